"""Flags and their refusals (manager.md: Flags of the manager)."""

from datetime import timedelta

import pytest

from captfctl.errors import InputError
from captfctl.settings import ManagerSettings, parse_address

GOOD = {"runner_image": "registry.example.com/captf:v1"}


def refused(**flags) -> str:
    with pytest.raises(InputError) as caught:
        ManagerSettings(**(GOOD | flags)).validate()
    return str(caught.value)


def test_defaults_are_the_documented_ones():
    settings = ManagerSettings(**GOOD)
    settings.validate()
    assert settings.sync_period == timedelta(minutes=10)
    assert settings.terraformcluster_concurrency == 10
    assert settings.terraformclusteridentity_concurrency == 4
    assert settings.health_addr == ":9440"
    assert settings.diagnostics_address == ":8443"
    assert not settings.insecure_diagnostics
    assert not settings.leader_elect
    assert settings.runner_events
    assert settings.drift_default_interval == timedelta(minutes=30)
    assert settings.cluster_operation_gate
    assert (settings.max_active_jobs, settings.cluster_max_active_jobs) == (200, 20)


def test_every_violation_is_in_one_error():
    text = refused(sync_period=timedelta(0), terraformcluster_concurrency=0, max_active_jobs=-1)
    assert text.startswith("manager: invalid flags:")
    for flag in ("--sync-period", "--terraformcluster-concurrency", "--max-active-jobs"):
        assert flag in text


@pytest.mark.parametrize("image", ["", "UPPER/Bad:Tag", "a b", "repo:tag:tag", "-repo"])
def test_a_runner_image_that_is_none_is_refused(image: str):
    assert "--runner-image" in refused(runner_image=image)


@pytest.mark.parametrize(
    "image",
    [
        "captf",
        "captf:v1",
        "localhost:5000/a/b:v1",
        "ghcr.io/captf/manager@sha256:" + "a" * 64,
        "UPPER.example.com/captf:Tag",
    ],
)
def test_image_references_are_accepted(image: str):
    ManagerSettings(runner_image=image).validate()


def test_zero_job_limits_mean_no_limit():
    ManagerSettings(**GOOD, max_active_jobs=0, cluster_max_active_jobs=0).validate()


def test_election_times_must_fit_and_need_a_namespace():
    text = refused(leader_elect=True, leader_elect_renew_deadline=timedelta(seconds=20))
    assert "--leader-elect-renew-deadline" in text
    assert "POD_NAMESPACE" in text


@pytest.mark.parametrize("address", ["9440", "host", ":x", ":70000"])
def test_an_address_without_a_port_is_refused(address: str):
    assert "--health-addr" in refused(health_addr=address)


def test_addresses():
    assert parse_address(":9440") == ("", 9440)
    assert parse_address("127.0.0.1:0") == ("127.0.0.1", 0)
    assert parse_address("[::1]:80") == ("::1", 80)


def test_an_unknown_tls_version_is_refused():
    assert "--tls-min-version" in refused(tls_min_version="VersionTLS99")

"""Decoding the outputs of the cluster role (module-contract.md: Rules for outputs)."""

import json

import pytest

from captfctl.model.capi import Endpoint
from captfctl.model.interface import HealthState
from captfctl.model.terraform import FailureDomain
from captfctl.terraform.contract.outputs import Health, decode_cluster
from tests.contract_module.objects import raw

HEALTHY = '{"state": "running", "healthy": true, "message": null, "reasons": []}'


def decode(**outputs):
    return decode_cluster(raw({"health": HEALTHY} | outputs))


def verdict(outputs):
    condition = outputs.findings.condition()
    return condition.status, condition.reason


INVALID = ("False", "OutputsInvalid")
VALID = ("True", "OutputsValid")


def test_good_outputs_are_decoded():
    outputs = decode(
        control_plane_endpoint='{"host": "api.example.com", "port": 6443, "extra": 1}',
        failure_domains='[{"name": "b"}, {"name": "a", "control_plane": false,'
        ' "attributes": {"zone": "1"}}]',
        exports='{"id": 12345678901234567890}',
    )
    assert verdict(outputs) == VALID
    assert outputs.findings.condition().message == ""
    assert outputs.control_plane_endpoint == Endpoint(host="api.example.com", port=6443)
    assert outputs.failure_domains == (
        FailureDomain(name="b", control_plane=True),
        FailureDomain(name="a", control_plane=False, attributes={"zone": "1"}),
    )
    assert outputs.health == Health(state=HealthState.RUNNING, healthy=True)


@pytest.mark.parametrize("text", [None, "null"])
def test_everything_but_health_may_be_null(text):
    absent = (
        {}
        if text is None
        else dict.fromkeys(("control_plane_endpoint", "failure_domains", "exports"), text)
    )
    outputs = decode(**absent)
    assert verdict(outputs) == VALID
    assert outputs.control_plane_endpoint is None
    assert outputs.failure_domains == ()
    assert outputs.exports == {}


@pytest.mark.parametrize("outputs", [{}, {"health": "null"}])
def test_a_missing_health_is_a_missing_output(outputs):
    decoded = decode_cluster(raw(outputs))
    assert verdict(decoded) == ("False", "OutputsMissing")
    assert decoded.health is None
    assert decoded.findings.concerns("health")
    assert "health" in decoded.findings.condition().message


@pytest.mark.parametrize(
    ("health", "words"),
    [
        ('{"state": "booting", "healthy": true}', "'booting'"),
        ('{"healthy": true}', "state"),
        ('{"state": 1, "healthy": true}', "state"),
        ('{"state": "running"}', "boolean"),
        ('{"state": "running", "healthy": null}', "boolean"),
        ('{"state": "running", "healthy": "yes"}', "boolean"),
        ('{"state": "running", "healthy": 1}', "boolean"),
        ('{"state": "running", "healthy": true, "message": 1}', "message"),
        ('{"state": "running", "healthy": true, "reasons": "x"}', "reasons"),
        ('{"state": "running", "healthy": true, "reasons": [1]}', "reasons"),
        ('"running"', "object"),
    ],
)
def test_a_health_of_the_wrong_shape_is_no_health(health, words):
    outputs = decode(health=health)
    assert verdict(outputs) == INVALID
    assert outputs.health is None
    assert words in outputs.findings.condition().message


def test_both_problems_of_a_health_are_told():
    message = decode(health='{"state": "booting"}').findings.condition().message
    assert "booting" in message
    assert "boolean" in message


def test_reasons_that_are_null_are_none():
    outputs = decode(health='{"state": "degraded", "healthy": false, "reasons": null}')
    assert outputs.health == Health(state=HealthState.DEGRADED, healthy=False)


def test_the_gravest_reason_comes_first_and_every_problem_is_told():
    outputs = decode_cluster(raw({"control_plane_endpoint": '"api:6443"'}))
    condition = outputs.findings.condition()
    assert condition.reason == "OutputsMissing"
    assert "health" in condition.message
    assert "control_plane_endpoint" in condition.message


@pytest.mark.parametrize("text", ['{"host": "", "port": 0}', '{"host": null, "port": null}', "{}"])
def test_an_empty_endpoint_counts_as_null(text):
    outputs = decode(control_plane_endpoint=text)
    assert (verdict(outputs), outputs.control_plane_endpoint) == (VALID, None)


@pytest.mark.parametrize(
    "endpoint",
    [
        {"host": "a"},
        {"port": 6443},
        {"host": "a", "port": 0},
        {"host": "a", "port": 70000},
        {"host": "a", "port": -1},
        {"host": "a", "port": "6443"},
        {"host": "a", "port": True},
        {"host": "a", "port": 6443.0},
        {"host": 1, "port": 6443},
        {"host": "a" * 513, "port": 6443},
        {"host": "ä" * 257, "port": 6443},
        "api:6443",
        [],
    ],
)
def test_an_endpoint_that_breaks_a_rule(endpoint):
    outputs = decode(control_plane_endpoint=json.dumps(endpoint))
    assert verdict(outputs) == INVALID
    assert outputs.control_plane_endpoint is None
    assert outputs.findings.concerns("control_plane_endpoint")
    assert not outputs.findings.concerns("exports")


def test_a_port_written_with_an_exponent_is_no_integer():
    assert verdict(decode(control_plane_endpoint='{"host": "a", "port": 1e3}')) == INVALID


@pytest.mark.parametrize(
    ("domains", "words"),
    [
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}], "entry 2"),
        ([{"name": ""}], "entry 0"),
        ([{"name": "a" * 257}], "entry 0"),
        ([{}], "entry 0"),
        (["a"], "entry 0"),
        ([{"name": "a", "control_plane": "yes"}], "control_plane"),
        ([{"name": "a", "attributes": {"k": 1}}], "attributes"),
        ([{"name": "a", "attributes": []}], "attributes"),
        ([{"name": f"d{i}"} for i in range(101)], "101"),
        ({"a": 1}, "list"),
    ],
)
def test_failure_domains_that_break_a_rule(domains, words):
    outputs = decode(failure_domains=json.dumps(domains))
    assert verdict(outputs) == INVALID
    assert outputs.failure_domains == ()
    assert words in outputs.findings.condition().message


@pytest.mark.parametrize("exports", ['{"ratio": 0.5}', "[[1e3]]", '{"a": {"b": -1.0}}'])
def test_exports_hold_integers_and_strings_only(exports):
    outputs = decode(exports=exports)
    assert verdict(outputs) == INVALID
    assert "integers or strings" in outputs.findings.condition().message


def test_values_never_show_up_in_messages():
    outputs = decode_cluster(
        raw(
            {
                "control_plane_endpoint": '"hunter2"',
                "failure_domains": '[{"name": {"hunter2": 1}}, {"name": "hunter2"},'
                ' {"name": "hunter2"}]',
                "exports": '{"hunter2": 0.5}',
                "health": '{"state": "hunter2 is a secret that went astray", "healthy": "hunter2"}',
            }
        )
    )
    message = outputs.findings.condition().message
    assert len(outputs.findings.violations) == 6
    assert "hunter2" not in message


def test_output_that_cannot_be_read_is_a_violation():
    outputs = decode(exports="[" * 300 + "]" * 300, health="[" * 300 + "]" * 300)
    assert verdict(outputs) == INVALID
    assert outputs.findings.missing == ()
    assert outputs.health is None

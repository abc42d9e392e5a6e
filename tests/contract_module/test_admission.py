"""What admission refuses beyond the schema (30 §3)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from captfctl.model.core import EnvVar
from captfctl.model.resources import SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import (
    ClusterDefaults,
    ControlPlaneEndpoint,
    IdentityRef,
    JobPolicy,
    NameRef,
    Source,
    VariablesSource,
)
from captfctl.terraform.contract.admission import check_cluster, check_described
from captfctl.terraform.contract.image_reference import image_problem
from tests.contract_module.objects import terraform_cluster

DIGEST = "sha256:" + "a" * 64


def raw(text):
    return msgspec.Raw(text.encode())


def fields(obj, old=None):
    return [cause.field for cause in check_cluster(obj, old)]


def jobs(**policy: Any):
    return terraform_cluster(jobs=JobPolicy(**policy))


def test_a_sound_cluster_is_admitted():
    obj = terraform_cluster(
        variables=raw('{"region": "eu"}'),
        jobs=JobPolicy(active_deadline_seconds=1200, lock_timeout_seconds=60),
        control_plane_endpoint=ControlPlaneEndpoint(host="a", port=1),
        variables_from=[VariablesSource(config_map_ref=NameRef(name="a"))],
    )
    assert check_cluster(obj) == ()
    assert check_cluster(obj, obj) == ()


def test_defaults_do_not_give_a_cluster_its_identity():
    obj = terraform_cluster(
        identity_ref=None, defaults=ClusterDefaults(identity_ref=IdentityRef(name="cloud"))
    )
    (cause,) = check_cluster(obj)
    assert (cause.field, cause.reason) == ("spec.identityRef", "FieldValueRequired")
    assert "machines" in cause.message


@pytest.mark.parametrize(
    "reference",
    [
        "busybox",
        "busybox:1.36",
        "library/busybox",
        "ghcr.io/example/cluster-module:v1",
        "localhost/module",
        "localhost:5000/module:dev",
        "reg.example.com:5000/a/b_c/d.e-f@" + DIGEST,
        "registry/a:v1@" + DIGEST,
        "[2001:db8::1]:5000/module",
        "UPPER.example.com/module",
        "Registry/module",
        "a/" + "b" * 240,
    ],
)
def test_image_references(reference):
    assert image_problem(reference) == ""
    assert check_cluster(terraform_cluster(source=Source(image=reference))) == ()


@pytest.mark.parametrize(
    "reference",
    [
        "Foo Bar",
        "foo bar",
        "ghcr.io/Example/module",
        "module:",
        "module:-tag",
        "module:" + "t" * 129,
        "module@sha256:abc",
        "module@sha512:" + "a" * 64,
        "module@md5:" + "a" * 32,
        "module@",
        "module@" + DIGEST.upper(),
        "a" * 64,
        "/module",
        "ghcr.io/",
        "ghcr.io//module",
        "module\n",
        "a..b/module",
        "a/" + "b" * 260,
        "https://ghcr.io/module",
    ],
)
def test_texts_that_are_no_image_reference(reference):
    (cause,) = check_cluster(terraform_cluster(source=Source(image=reference)))
    assert cause.field == "spec.source.image"
    assert "not a valid image reference" in cause.message


def test_an_empty_image_is_required():
    (cause,) = check_cluster(terraform_cluster(source=Source(image="")))
    assert (cause.field, cause.reason) == ("spec.source.image", "FieldValueRequired")


def test_a_bad_image_that_is_stored_already_does_not_stop_other_changes():
    old = terraform_cluster(source=Source(image="Foo Bar"))
    assert (
        check_cluster(terraform_cluster(source=Source(image="Foo Bar"), max_active_jobs=2), old)
        == ()
    )
    changed = terraform_cluster(source=Source(image="Foo Baz"))
    assert fields(changed, old) == ["spec.source.image"]


@pytest.mark.parametrize(
    ("endpoint", "missing"), [({"host": "a"}, "port"), ({"port": 6443}, "host")]
)
def test_half_an_endpoint_is_refused(endpoint, missing):
    obj = terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(**endpoint))
    assert fields(obj) == [f"spec.controlPlaneEndpoint.{missing}"]


def test_half_an_endpoint_that_is_stored_may_be_completed():
    old = terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(host="a"))
    new = terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(host="a", port=1))
    assert check_cluster(new, old) == ()


@pytest.mark.parametrize(
    "endpoint",
    [None, ControlPlaneEndpoint(host="b", port=1), ControlPlaneEndpoint(host="a", port=2)],
)
def test_a_whole_endpoint_stays(endpoint):
    old = terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(host="a", port=1))
    assert fields(terraform_cluster(control_plane_endpoint=endpoint), old) == [
        "spec.controlPlaneEndpoint"
    ]


def test_every_violation_comes_at_once():
    obj = terraform_cluster(
        source=Source(image="Foo Bar"),
        jobs=JobPolicy(lock_timeout_seconds=3600),
        variables=raw('{"captf_x": 1}'),
    )
    assert fields(obj) == [
        "spec.source.image",
        "spec.jobs.lockTimeoutSeconds",
        "spec.variables[captf_x]",
    ]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"active_deadline_seconds": 300}, "activeDeadlineSeconds"),
        ({"lock_timeout_seconds": 3600}, "lockTimeoutSeconds"),
        ({"active_deadline_seconds": 100, "lock_timeout_seconds": 100}, "lockTimeoutSeconds"),
    ],
)
def test_a_job_must_not_end_while_it_waits_for_the_lock(policy, field):
    assert fields(jobs(**policy)) == [f"spec.jobs.{field}"]


@pytest.mark.parametrize(
    "policy",
    [
        {"active_deadline_seconds": 301},
        {"lock_timeout_seconds": 3599},
        {"lock_timeout_seconds": 0},
        {"active_deadline_seconds": 1, "lock_timeout_seconds": 0},
        {},
    ],
)
def test_a_lock_timeout_below_the_deadline_is_fine(policy):
    assert check_cluster(jobs(**policy)) == ()


@pytest.mark.parametrize(
    "name", ["TF_LOG", "KUBE_X", "KUBERNETES_SERVICE_HOST", "HOME", "TMPDIR", "CHECKPOINT_DISABLE"]
)
def test_variables_of_the_job_itself_are_reserved(name):
    obj = jobs(env=[EnvVar(name="FOO", value="1"), EnvVar(name=name, value="hunter2")])
    (cause,) = check_cluster(obj)
    assert cause.field == "spec.jobs.env[1].name"
    assert "hunter2" not in cause.message


REFUSED = [
    ({"privileged": True}, "privileged"),
    ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
    ({"capabilities": {"add": ["NET_ADMIN"]}}, "capabilities.add"),
    ({"readOnlyRootFilesystem": False}, "readOnlyRootFilesystem"),
    ({"procMount": "Unmasked"}, "procMount"),
    ({"runAsNonRoot": False}, "runAsNonRoot"),
    ({"runAsUser": 0}, "runAsUser"),
    ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type"),
    ({"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile.type"),
    ({"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions.type"),
    ({"seLinuxOptions": {"user": "system_u"}}, "seLinuxOptions.user"),
    ({"seLinuxOptions": {"role": "system_r"}}, "seLinuxOptions.role"),
    ({"windowsOptions": {"hostProcess": True}}, "windowsOptions.hostProcess"),
]


@pytest.mark.parametrize(("context", "field"), REFUSED)
def test_a_container_may_not_ask_for_more_than_a_run_needs(context, field):
    assert fields(jobs(security_context=context)) == [f"spec.jobs.securityContext.{field}"]


@pytest.mark.parametrize(("context", "field"), REFUSED[5:])
def test_a_pod_may_not_either(context, field):
    assert fields(jobs(pod_security_context=context)) == [f"spec.jobs.podSecurityContext.{field}"]


@pytest.mark.parametrize(
    "context",
    [
        {"privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        {"capabilities": {"drop": ["ALL"], "add": []}},
        {"runAsUser": 1000, "runAsNonRoot": True, "procMount": "Default"},
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}},
        {"seLinuxOptions": {"type": "container_t", "level": "s0"}},
        {"seLinuxOptions": None, "capabilities": None},
        {},
    ],
)
def test_a_stricter_context_is_fine(context):
    assert check_cluster(jobs(security_context=context)) == ()


def test_sysctls_are_limited_to_the_safe_ones():
    context = {
        "sysctls": [
            {"name": "net.ipv4.tcp_syncookies", "value": "1"},
            {"name": "kernel.msgmax", "value": "1"},
        ]
    }
    assert fields(jobs(pod_security_context=context)) == [
        "spec.jobs.podSecurityContext.sysctls[1].name"
    ]


def test_inherited_policies_are_checked_like_the_own_one():
    defaults = ClusterDefaults(jobs=JobPolicy(lock_timeout_seconds=3600))
    assert fields(terraform_cluster(defaults=defaults)) == ["spec.defaults.jobs.lockTimeoutSeconds"]


def test_a_bad_policy_that_is_stored_already_does_not_stop_other_changes():
    old = jobs(lock_timeout_seconds=3600)
    new = jobs(lock_timeout_seconds=3600)
    new.metadata.labels["team"] = "a"
    assert check_cluster(new, old) == ()
    assert fields(jobs(lock_timeout_seconds=3601), old) == ["spec.jobs.lockTimeoutSeconds"]


def test_a_bad_policy_does_not_stop_a_deletion():
    obj = jobs(lock_timeout_seconds=3600)
    obj.metadata.deletion_timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    assert check_cluster(obj, terraform_cluster()) == ()


@pytest.mark.parametrize("text", ["null", "[]", '"hunter2"', "{", "{}"])
def test_inline_variables_are_an_object_with_something_in_it(text):
    (cause,) = check_cluster(terraform_cluster(variables=raw(text)))
    assert cause.field == "spec.variables"
    assert "hunter2" not in cause.message


def test_256_variables_are_the_most():
    def variables(count):
        return raw(msgspec.json.encode({f"v{i}": i for i in range(count)}).decode())

    assert check_cluster(terraform_cluster(variables=variables(256))) == ()
    (cause,) = check_cluster(terraform_cluster(variables=variables(257)))
    assert (cause.field, cause.reason) == ("spec.variables", "FieldValueTooMany")


def test_a_bad_variable_name_is_told_without_its_value():
    text = msgspec.json.encode({"a\n": "hunter2", "ok": 1}).decode()
    (cause,) = check_cluster(terraform_cluster(variables=raw(text)))
    assert cause.field == "spec.variables['a\\n']"
    assert "hunter2" not in cause.message


@pytest.mark.parametrize(
    "source",
    [
        VariablesSource(),
        VariablesSource(config_map_ref=NameRef(name="a"), secret_ref=NameRef(name="b")),
    ],
)
def test_a_source_names_one_object(source):
    good = VariablesSource(secret_ref=NameRef(name="b"))
    obj = terraform_cluster(variables_from=[good, source])
    assert fields(obj) == ["spec.variablesFrom[1]"]


def test_an_object_from_a_file_is_checked_like_one_of_a_request():
    document = {
        "metadata": {"name": "prod", "namespace": "team-a"},
        "spec": {"source": {"image": "Foo Bar"}, "identityRef": {"name": "cloud"}},
    }
    (cause,) = check_described(TERRAFORM_CLUSTERS.untyped(), document)
    assert cause.field == "spec.source.image"
    assert check_described(SECRETS.untyped(), {"metadata": {"name": "s"}}) == ()

"""What admission refuses beyond the schemas of the kinds, evaluated as the embedded server does."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from captfctl.cluster.errors import Invalid
from captfctl.embedded.described import scratch_store
from captfctl.embedded.store import DeniedByPolicy, EmbeddedStore
from captfctl.install import deletion_protection
from captfctl.install.policies import POLICIES, policies
from captfctl.model.crds import crds
from captfctl.model.job_policy import RESERVED_ENV, RESERVED_ENV_PREFIXES
from captfctl.model.kinds import Role
from captfctl.model.resources import TERRAFORM_CLUSTERS, TERRAFORM_PLANS
from captfctl.model.variable_names import META_ARGUMENTS, name_problem
from tests.support.clock import FakeClock

DIGEST = "sha256:" + "a" * 64
NAME = "prod"


@pytest.fixture(scope="module")
def store() -> Iterator[EmbeddedStore]:
    found = scratch_store(FakeClock(), (*crds(), *policies()))
    yield found
    found.close()


class Admission:
    """Creates and updates of one cluster at a time."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._served = store.registry.find_kind(
            TERRAFORM_CLUSTERS.api_version, TERRAFORM_CLUSTERS.kind
        )

    def create(self, **spec: Any) -> None:
        document = {
            "apiVersion": TERRAFORM_CLUSTERS.api_version,
            "kind": TERRAFORM_CLUSTERS.kind,
            "metadata": {"name": NAME, "finalizers": ["example.com/stays"]},
            "spec": {
                "source": {"image": "registry.example.com/a:v1"},
                "identityRef": {"name": "cloud"},
                **copy.deepcopy(spec),
            },
        }
        self._store.create(self._served, document, "default")

    def change(self, change) -> None:
        self._store.modify(self._served, NAME, "default", change)

    def set(self, **spec: Any) -> None:
        self.change(lambda stored: stored | {"spec": stored["spec"] | copy.deepcopy(spec)})

    def mark_deleted(self) -> None:
        self._store.delete(self._served, NAME, "default")

    def remove(self) -> None:
        try:
            self.mark_deleted()
        except Exception:  # there was nothing
            return
        self.change(lambda s: s | {"metadata": s["metadata"] | {"finalizers": []}})


@pytest.fixture
def admission(store) -> Iterator[Admission]:
    found = Admission(store)
    yield found
    found.remove()


@pytest.fixture
def stored_under_looser_rules(store):
    """Admission of a cluster that was stored when there were no policies."""

    def make(**spec: Any) -> Admission:
        served = [store.registry.find_kind(d["apiVersion"], d["kind"]) for d in policies()]
        for kind, document in zip(served, policies(), strict=True):
            store.delete(kind, document["metadata"]["name"])
        found = Admission(store)
        found.create(**spec)
        for kind, document in zip(served, policies(), strict=True):
            store.create(kind, document)
        return found

    yield make
    Admission(store).remove()


def fields(write, *args, **spec) -> list[str]:
    """The fields that a refusal names."""
    try:
        write(*args, **spec)
    except DeniedByPolicy as denied:
        return [problem.field for problem in denied.problems]
    return []


def test_a_sound_cluster_is_admitted(admission):
    admission.create(
        variables={"region": "eu"},
        jobs={"activeDeadlineSeconds": 1200, "lockTimeoutSeconds": 60},
        defaults={"jobs": {"env": [{"name": "A", "value": "b"}]}},
    )
    admission.set(variables={"region": "us"})


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
def test_image_references(admission, reference):
    admission.create(source={"image": reference})


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
        "b" * 250,
        "https://ghcr.io/module",
    ],
)
def test_texts_that_are_no_image_reference(admission, reference):
    with pytest.raises(DeniedByPolicy, match="is not a valid image reference: write") as refused:
        admission.create(source={"image": reference})
    assert [problem.field for problem in refused.value.problems] == ["spec.source.image"]


def test_a_bad_image_that_is_stored_already_does_not_stop_other_changes(stored_under_looser_rules):
    stored = stored_under_looser_rules(source={"image": "Foo Bar"})
    stored.set(maxActiveJobs=2)
    assert fields(stored.set, source={"image": "Foo Baz"}) == ["spec.source.image"]


def test_every_violation_comes_at_once(admission):
    with pytest.raises(DeniedByPolicy) as refused:
        admission.create(
            source={"image": "Foo Bar"},
            jobs={"lockTimeoutSeconds": 3600, "env": [{"name": "TF_LOG", "value": "hunter2"}]},
            variables={"captf_x": 1},
        )
    assert [problem.field for problem in refused.value.problems] == [
        "spec.source.image",
        "spec.variables[captf_x]",
        "spec.jobs.lockTimeoutSeconds",
        'spec.jobs.env[name="TF_LOG"].name',
    ]
    for problem in refused.value.problems:
        assert f"{problem.field}: {problem.message}" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("place", ["jobs", "defaults.jobs"])
@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"activeDeadlineSeconds": 300}, "activeDeadlineSeconds"),
        ({"lockTimeoutSeconds": 3600}, "lockTimeoutSeconds"),
        ({"activeDeadlineSeconds": 100, "lockTimeoutSeconds": 100}, "lockTimeoutSeconds"),
    ],
)
def test_a_job_must_not_end_while_it_waits_for_the_lock(admission, place, policy, field):
    spec = {"jobs": policy} if place == "jobs" else {"defaults": {"jobs": policy}}
    assert fields(admission.create, **spec) == [f"spec.{place}.{field}"]


@pytest.mark.parametrize(
    "policy",
    [
        {"activeDeadlineSeconds": 301},
        {"lockTimeoutSeconds": 3599},
        {"lockTimeoutSeconds": 0},
        {"activeDeadlineSeconds": 1, "lockTimeoutSeconds": 0},
    ],
)
def test_a_lock_timeout_below_the_deadline_is_fine(admission, policy):
    admission.create(jobs=policy)


@pytest.mark.parametrize("name", [*sorted(RESERVED_ENV), *(f"{p}X" for p in RESERVED_ENV_PREFIXES)])
def test_variables_of_the_job_itself_are_reserved(admission, name):
    env = [{"name": "FOO", "value": "1"}, {"name": name, "value": "hunter2"}]
    assert fields(admission.create, jobs={"env": env}) == [f'spec.jobs.env[name="{name}"].name']


REFUSED = [
    ({"privileged": True}, "privileged"),
    ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
    ({"capabilities": {"add": ["NET_ADMIN"]}}, "capabilities.add"),
    ({"capabilities": {"add": "NET_ADMIN"}}, "capabilities.add"),
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


@pytest.mark.parametrize("place", ["securityContext", "podSecurityContext"])
@pytest.mark.parametrize(("context", "field"), REFUSED)
def test_a_run_may_not_ask_for_more_than_it_needs(admission, place, context, field):
    assert fields(admission.create, jobs={place: context}) == [f"spec.jobs.{place}.{field}"]


@pytest.mark.parametrize(
    "context",
    [
        {"privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        {"capabilities": {"drop": ["ALL"], "add": []}},
        {"runAsUser": 1000, "runAsNonRoot": True, "procMount": "Default"},
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}},
        {"seLinuxOptions": {"type": "container_t", "level": "s0", "user": ""}},
        {"seLinuxOptions": None, "capabilities": None},
        {"seccompProfile": "text", "windowsOptions": [1]},
        {},
    ],
)
def test_a_stricter_context_is_fine(admission, context):
    admission.create(jobs={"securityContext": context, "podSecurityContext": context})


def test_sysctls_are_limited_to_the_safe_ones(admission):
    sysctls = [
        {"name": "net.ipv4.tcp_syncookies", "value": "1"},
        {"name": "kernel.msgmax", "value": "1"},
        "kernel.msgmax",
    ]
    path = "spec.jobs.podSecurityContext.sysctls"
    context = {"sysctls": sysctls}
    assert fields(admission.create, jobs={"podSecurityContext": context}) == [
        f'{path}[name="kernel.msgmax"].name',
        path,
    ]


def test_a_bad_policy_that_is_stored_already_does_not_stop_other_changes(stored_under_looser_rules):
    stored = stored_under_looser_rules(jobs={"lockTimeoutSeconds": 3600})
    stored.change(lambda s: s | {"metadata": s["metadata"] | {"labels": {"team": "a"}}})
    stored.set(maxActiveJobs=3)
    assert fields(stored.set, jobs={"activeDeadlineSeconds": 300}) == [
        "spec.jobs.activeDeadlineSeconds"
    ]


def test_a_bad_policy_does_not_stop_a_deletion(admission):
    admission.create()
    admission.mark_deleted()
    admission.set(jobs={"lockTimeoutSeconds": 3600})


@pytest.mark.parametrize(
    "name",
    [
        *("region", "_a", "a-b", "aZ9_", "x" * 300, "bootstrap_data", "replicas"),
        *("a\n", "", "9a", "a.b", "ä", "a b", "captf_", "captf_x", "CAPTF_x"),
        *("control_plane_endpoint", "kubernetes_version", "captf_contract", "cluster_network"),
        *sorted(META_ARGUMENTS),
    ],
)
def test_a_variables_name_is_refused_where_the_controller_would_refuse_it(admission, name):
    problem = name_problem(name, Role.CLUSTER)
    try:
        admission.create(variables={name: "hunter2", "ok": 1})
    except DeniedByPolicy as denied:
        (found,) = denied.problems
        shown = name.replace("\n", "\\n")
        assert found.field == f"spec.variables[{shown}]"
        assert found.message == f"the name {problem}"
        assert "hunter2" not in str(denied)
    else:
        assert problem == ""


def test_more_than_one_answer_holds_still_says_what_to_do(admission):
    env = [{"name": f"TF_{'x' * 200}{number}", "value": ""} for number in range(64)]
    with pytest.raises(DeniedByPolicy, match="captfctl reconcile --dry-run -f") as refused:
        admission.create(jobs={"env": env})
    assert len(refused.value.problems) == 64


def test_what_the_schema_refuses_is_not_told_twice(admission):
    with pytest.raises(Invalid) as refused:
        admission.create(source={"image": ""}, variables={})
    assert not isinstance(refused.value, DeniedByPolicy)
    assert {cause.field for cause in refused.value.causes} == {
        "spec.source.image",
        "spec.variables",
    }


def test_every_policy_is_in_force_for_writes_or_for_deletes_and_refuses_when_it_fails():
    for policy, binding in zip(policies()[::2], policies()[1::2], strict=True):
        (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
        deletes = policy["metadata"]["name"] == deletion_protection.NAME
        assert rule["operations"] == (["DELETE"] if deletes else ["CREATE", "UPDATE"])
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        warns = policy["metadata"]["name"].startswith("advice.")
        assert binding["spec"]["validationActions"] == ["Warn" if warns else "Deny"]
    names = {policy["metadata"]["name"] for policy in policies()[::2]}
    assert names == {policy.name for policy in POLICIES} | {
        TERRAFORM_PLANS.name,
        deletion_protection.NAME,
    }

"""Rules of Kubernetes' own kinds: Secrets, ConfigMaps, Jobs, Leases, Events, roles, namespaces."""

import base64

import pytest

from captfctl.cluster.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound
from captfctl.model.core import Job, Namespace
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
)
from tests.contract.widgets import make

RAW_SECRETS = SECRETS.untyped()
RAW_CONFIG_MAPS = CONFIG_MAPS.untyped()
RAW_JOBS = JOBS.untyped()
RAW_LEASES = LEASES.untyped()
RAW_EVENTS = EVENTS.untyped()
CORE_EVENTS = Resource("", "v1", "Event", "events", True, Document)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def fields_of(caught) -> list[str]:
    return [cause.field for cause in caught.value.causes]


def test_a_secrets_texts_become_data(door, namespace):
    secret = make("a") | {"data": {"k": b64("old"), "other": b64("o")}, "stringData": {"k": "new"}}
    made = door.create(RAW_SECRETS, secret, namespace)
    assert made["data"] == {"k": b64("new"), "other": b64("o")}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


def test_a_secrets_texts_can_be_patched_in(door, namespace):
    door.create(RAW_SECRETS, make("a") | {"data": {"k": b64("1")}}, namespace)
    patched = door.patch(RAW_SECRETS, "a", namespace, {"stringData": {"l": "2"}})
    assert patched["data"] == {"k": b64("1"), "l": b64("2")}


def test_a_secrets_type_is_for_good(door, namespace):
    door.create(RAW_SECRETS, make("a"), namespace)
    with pytest.raises(Invalid) as caught:
        door.patch(RAW_SECRETS, "a", namespace, {"type": "example.test/other"})
    assert fields_of(caught) == ["type"]


def test_a_secret_may_be_empty(door, namespace):
    assert "data" not in door.create(RAW_SECRETS, make("a"), namespace)


@pytest.mark.parametrize("resource", [RAW_SECRETS, RAW_CONFIG_MAPS], ids=["secret", "configmap"])
def test_immutable_data_stays(door, namespace, resource):
    value, other = b64("1"), b64("2")
    door.create(resource, make("a") | {"data": {"k": value}, "immutable": True}, namespace)
    with pytest.raises(Invalid):
        door.patch(resource, "a", namespace, {"data": {"k": other}})
    with pytest.raises(Invalid):
        door.patch(resource, "a", namespace, {"immutable": False})
    labelled = door.patch(resource, "a", namespace, {"metadata": {"labels": {"l": "v"}}})
    assert labelled["metadata"]["labels"] == {"l": "v"}


@pytest.mark.parametrize("resource", [RAW_SECRETS, RAW_CONFIG_MAPS], ids=["secret", "configmap"])
@pytest.mark.parametrize("key", ["with space", "a/b", "..", ""])
def test_data_keys_are_file_names(door, namespace, resource, key):
    with pytest.raises(Invalid):
        door.create(resource, make("a") | {"data": {key: b64("v")}}, namespace)


def test_a_megabyte_of_data_is_the_most(door, namespace):
    exact = "x" * 2**20
    door.create(RAW_SECRETS, make("a") | {"stringData": {"k": exact}}, namespace)
    with pytest.raises(ApiError):
        door.create(RAW_SECRETS, make("b") | {"stringData": {"k": exact + "x"}}, namespace)


def test_data_must_be_base64(door, namespace):
    with pytest.raises(BadRequest):
        door.create(RAW_SECRETS, make("a") | {"data": {"k": "not base64!"}}, namespace)


def test_a_field_of_the_wrong_type_is_refused(door, namespace):
    with pytest.raises(BadRequest):
        door.create(RAW_CONFIG_MAPS, make("a") | {"data": {"k": 7}}, namespace)
    with pytest.raises(BadRequest):
        door.create(RAW_JOBS, make("a", {"backoffLimit": "six"}), namespace)


def job(**spec):
    container = {"name": "main", "image": "example.test/none:1"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return make("a", {"template": {"spec": pod}, "suspend": True} | spec)


def test_a_job_is_filled_in(door, namespace):
    made = door.create(RAW_JOBS, job(), namespace)
    spec, uid = made["spec"], made["metadata"]["uid"]
    assert made["metadata"]["generation"] == 1
    assert (spec["backoffLimit"], spec["parallelism"], spec["completions"]) == (6, 1, 1)
    assert spec["completionMode"] == "NonIndexed"
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == uid
    assert labels["batch.kubernetes.io/job-name"] == "a"
    assert labels["job-name"] == "a"
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 30
    assert pod["containers"][0]["terminationMessagePath"] == "/dev/termination-log"


def test_a_job_decodes_into_our_type(door, namespace):
    door.create(RAW_JOBS, job(backoffLimit=0), namespace)
    found: Job = door.get(JOBS, "a", namespace)
    assert found.spec.backoff_limit == 0
    assert found.spec.template.spec.restart_policy == "Never"


def test_a_job_needs_a_restart_policy_that_ends(door, namespace):
    wanted = job()
    del wanted["spec"]["template"]["spec"]["restartPolicy"]
    with pytest.raises(Invalid) as caught:
        door.create(RAW_JOBS, wanted, namespace)
    assert fields_of(caught) == ["spec.template.spec.restartPolicy"]


def test_a_jobs_template_is_for_good(door, namespace):
    door.create(RAW_JOBS, job(), namespace)
    container = {"name": "main", "image": "example.test/other:1"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    with pytest.raises(Invalid) as caught:
        door.patch(RAW_JOBS, "a", namespace, patch)
    assert "spec.template" in fields_of(caught)
    with pytest.raises(Invalid):
        door.patch(RAW_JOBS, "a", namespace, {"spec": {"completions": 3}})


def test_a_jobs_limits_can_be_changed(door, namespace):
    door.create(RAW_JOBS, job(), namespace)
    patched = door.patch(RAW_JOBS, "a", namespace, {"spec": {"activeDeadlineSeconds": 60}})
    assert patched["spec"]["activeDeadlineSeconds"] == 60
    assert patched["metadata"]["generation"] == 2


def test_a_lease_is_kept_to_the_microsecond(door, namespace):
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "renewTime": "2026-01-02T03:04:05.678901Z",
        "acquireTime": "2026-01-02T03:04:05.000000Z",
    }
    made = door.create(RAW_LEASES, make("a", spec), namespace)
    assert made["spec"]["renewTime"] == "2026-01-02T03:04:05.678901Z"
    assert made["spec"]["acquireTime"] == "2026-01-02T03:04:05.000000Z"
    assert made["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize("time", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "yesterday"])
def test_a_leases_times_have_six_digits_after_the_second(door, namespace, time):
    with pytest.raises(BadRequest):
        door.create(RAW_LEASES, make("a", {"renewTime": time}), namespace)


def test_a_lease_lasts_longer_than_nothing(door, namespace):
    with pytest.raises(Invalid) as caught:
        door.create(RAW_LEASES, make("a", {"leaseDurationSeconds": 0}), namespace)
    assert fields_of(caught) == ["spec.leaseDurationSeconds"]


def test_a_lease_has_one_winner(door, namespace):
    made = door.create(RAW_LEASES, make("a", {"holderIdentity": ""}), namespace)
    stale = {"metadata": made["metadata"] | {}, "spec": {"holderIdentity": "second"}}
    door.patch(RAW_LEASES, "a", namespace, {"spec": {"holderIdentity": "first"}})
    with pytest.raises(ApiError) as caught:
        door.update(RAW_LEASES, stale)
    assert caught.value.status == 409
    assert door.get(RAW_LEASES, "a", namespace)["spec"]["holderIdentity"] == "first"


def event(namespace, **fields):
    return (
        make("a")
        | {
            "eventTime": "2026-01-02T03:04:05.678901Z",
            "reportingController": "contract.test/controller",
            "reportingInstance": "instance-0",
            "action": "Applying",
            "reason": "Applied",
            "type": "Normal",
            "note": "what happened",
            "regarding": {"kind": "Widget", "name": "w", "namespace": namespace},
        }
        | fields
    )


def test_an_event_is_seen_by_both_its_names(door, namespace):
    door.create(RAW_EVENTS, event(namespace), namespace)
    core = door.get(CORE_EVENTS, "a", namespace)
    assert core["message"] == "what happened"
    assert core["involvedObject"]["name"] == "w"
    assert core["reportingComponent"] == "contract.test/controller"
    assert core["eventTime"] == "2026-01-02T03:04:05.678901Z"
    new = door.get(RAW_EVENTS, "a", namespace)
    assert new["note"] == "what happened"
    assert new["metadata"]["uid"] == core["metadata"]["uid"]


def test_events_are_selected_by_what_they_are_about(door, namespace):
    door.create(RAW_EVENTS, event(namespace), namespace)
    other = event(namespace, regarding={"kind": "Widget", "name": "v", "namespace": namespace})
    other["metadata"]["name"] = "b"
    door.create(RAW_EVENTS, other, namespace)

    def found(resource, fields):
        return [e["metadata"]["name"] for e in door.list(resource, namespace, fields=fields).items]

    assert found(CORE_EVENTS, "involvedObject.name=w,involvedObject.kind=Widget") == ["a"]
    assert found(CORE_EVENTS, "reason=Applied,type=Normal") == ["a", "b"]
    assert found(RAW_EVENTS, "regarding.name=v") == ["b"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"reportingController": ""}, "reportingController"),
        ({"reportingInstance": ""}, "reportingInstance"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"type": "Other"}, "type"),
        ({"note": "x" * 1025}, "message"),
    ],
)
def test_a_new_event_says_who_and_what(door, namespace, fields, field):
    with pytest.raises(Invalid) as caught:
        door.create(RAW_EVENTS, event(namespace, **fields), namespace)
    assert field in fields_of(caught)


def test_an_event_about_what_has_no_namespace_belongs_into_the_default_one(door, namespace):
    about = {"kind": "Widget", "name": "w"}
    with pytest.raises(Invalid) as caught:
        door.create(RAW_EVENTS, event(namespace, regarding=about), namespace)
    assert fields_of(caught) == ["involvedObject.namespace"]
    wanted = event("default", regarding=about)
    wanted["metadata"] = {"generateName": "contract-"}
    name = door.create(RAW_EVENTS, wanted, "default")["metadata"]["name"]
    door.delete(RAW_EVENTS, name, "default")


def test_an_old_style_event_is_in_the_namespace_of_its_object(door, namespace):
    def old(about):
        return make("a") | {
            "reason": "R",
            "message": "m",
            "type": "Normal",
            "involvedObject": about,
        }

    with pytest.raises(Invalid) as caught:
        elsewhere = {"kind": "Widget", "name": "w", "namespace": "elsewhere"}
        door.create(CORE_EVENTS, old(elsewhere), namespace)
    assert fields_of(caught) == ["involvedObject.namespace"]
    here = {"kind": "Widget", "name": "w", "namespace": namespace}
    assert door.create(CORE_EVENTS, old(here), namespace)["message"] == "m"


def test_an_events_series_can_go_on_but_not_its_story(door, namespace):
    door.create(RAW_EVENTS, event(namespace), namespace)
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}
    patched = door.patch(RAW_EVENTS, "a", namespace, {"series": series})
    assert patched["series"] == series
    with pytest.raises(Invalid):
        door.patch(RAW_EVENTS, "a", namespace, {"note": "something else"})


def test_a_bindings_role_is_for_good(door, namespace):
    resource = ROLE_BINDINGS.untyped()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    account = {"kind": "ServiceAccount", "name": "s", "namespace": namespace}
    door.create(resource, make("a") | {"roleRef": role, "subjects": [account]}, namespace)
    with pytest.raises(Invalid) as caught:
        door.patch(resource, "a", namespace, {"roleRef": {"name": "other"}})
    assert fields_of(caught) == ["roleRef"]


def test_a_namespace_is_active_and_labelled(door, namespace):
    found: Namespace = door.get(NAMESPACES, namespace)
    assert found.status["phase"] == "Active"
    assert found.spec["finalizers"] == ["kubernetes"]
    assert found.metadata.labels["kubernetes.io/metadata.name"] == namespace


def test_nothing_new_is_made_in_a_namespace_that_ends(door, widget):
    held = Namespace(metadata=ObjectMeta(generate_name="contract-ending-"))
    name = door.create(NAMESPACES, held).metadata.name
    door.create(widget, make("a", finalizers=["contract.test/hold"]), name)
    door.delete(NAMESPACES, name)
    ending: Namespace = door.get(NAMESPACES, name)
    assert ending.status["phase"] == "Terminating"
    assert ending.deleting
    with pytest.raises(Forbidden):
        door.create(widget, make("b"), name)
    patched = door.patch(widget, "a", name, {"metadata": {"finalizers": None}})
    assert patched["metadata"]["name"] == "a"


def test_a_namespace_goes_when_its_contents_are_declared_gone(door, eventually):
    name = door.create(
        NAMESPACES, Namespace(metadata=ObjectMeta(generate_name="contract-ending-"))
    ).metadata.name
    door.delete(NAMESPACES, name)

    def gone() -> bool:
        try:
            ending: Namespace = door.get(NAMESPACES, name)
            ending.spec = {}
            door.update(NAMESPACES, ending, subresource="finalize")
        except NotFound:
            return True
        return False

    eventually(gone)


def test_the_namespaces_of_the_system_stay(door):
    with pytest.raises(Forbidden):
        door.delete(NAMESPACES, "kube-system")


@pytest.mark.parametrize("name", ["with.dot", "a" * 64])
def test_a_namespace_is_named_by_one_label(door, name):
    with pytest.raises(Invalid):
        door.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))

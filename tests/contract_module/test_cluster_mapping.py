"""What a cluster's outputs change on its objects (module-contract.md: What outputs change)."""

import json

import msgspec
import pytest

from captfctl.model import keys
from captfctl.model.capi import Endpoint
from captfctl.model.conditions import Conditions, ConditionValue
from captfctl.model.interface import HealthState
from captfctl.model.reasons import OutputsValid
from captfctl.model.status import Initialization
from captfctl.model.terraform import ControlPlaneEndpoint, FailureDomain
from captfctl.terraform.contract.mapping import EXPORTS_LIMIT, infrastructure_healthy, map_cluster
from captfctl.terraform.contract.outputs import Health, decode_cluster
from tests.contract_module.objects import capi_cluster, raw, terraform_cluster
from tests.support.clock import START

ENDPOINT = '{"host": "api.example.com", "port": 6443}'
RUNNING = {"state": "running", "healthy": True}


def provisioned(obj=None):
    obj = obj or terraform_cluster()
    obj.status.initialization = Initialization(provisioned=True)
    return obj


def mapped(
    obj=None, *, health=None, cluster=None, state_has_hash=True, input_was_null=True, **outputs
):
    texts = {"health": json.dumps(health or RUNNING)} | outputs
    return map_cluster(
        obj or terraform_cluster(),
        capi_cluster(cluster),
        decode_cluster(raw(texts)),
        state_has_hash=state_has_hash,
        endpoint_input_was_null=input_was_null,
    )


def reasons(mapping):
    return [note.reason for note in mapping.notes]


def test_the_first_endpoint_of_the_module_is_written_and_announced():
    mapping = mapped(control_plane_endpoint=ENDPOINT)
    assert mapping.endpoint == Endpoint(host="api.example.com", port=6443)
    assert reasons(mapping) == ["ControlPlaneEndpointSet"]


@pytest.mark.parametrize("source", ["module", "user"])
def test_an_endpoint_with_a_source_is_never_changed(source):
    obj = terraform_cluster()
    obj.metadata.annotations[keys.ENDPOINT_SOURCE] = source
    assert mapped(obj, control_plane_endpoint=ENDPOINT).endpoint is None


def test_an_endpoint_that_was_an_input_is_not_taken_from_the_output():
    assert mapped(input_was_null=False, control_plane_endpoint=ENDPOINT).endpoint is None


def test_an_endpoint_that_is_already_there_stays():
    obj = terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(host="a", port=1))
    mapping = mapped(obj, control_plane_endpoint=ENDPOINT)
    assert (mapping.endpoint, reasons(mapping)) == (None, [])


def test_failure_domains_are_published_and_a_change_is_announced():
    mapping = mapped(failure_domains='[{"name": "a"}, {"name": "b", "control_plane": false}]')
    assert mapping.failure_domains == (
        FailureDomain(name="a", control_plane=True),
        FailureDomain(name="b", control_plane=False),
    )
    (note,) = mapping.notes
    assert (note.reason, note.warning) == ("FailureDomainsChanged", False)
    assert "2 failure domains: a, b" in note.note
    obj = terraform_cluster()
    obj.status.failure_domains = list(mapping.failure_domains)
    same = mapped(obj, failure_domains='[{"name": "a"}, {"name": "b", "control_plane": false}]')
    assert same.notes == ()


@pytest.mark.parametrize("text", ["null", "[]"])
def test_no_failure_domains_clear_the_field(text):
    obj = terraform_cluster()
    obj.status.failure_domains = [FailureDomain(name="a")]
    mapping = mapped(obj, failure_domains=text)
    assert mapping.failure_domains == ()
    assert "none" in mapping.notes[0].note


def test_outputs_that_break_a_rule_keep_what_was_published():
    obj = terraform_cluster()
    obj.status.failure_domains = [FailureDomain(name="a")]
    obj.status.exports = msgspec.Raw(b'{"old":1}')
    mapping = mapped(obj, failure_domains='["broken"]', exports='{"ratio": 0.5}')
    assert mapping.outputs_valid.reason == "OutputsInvalid"
    assert mapping.failure_domains == (FailureDomain(name="a"),)
    assert bytes(mapping.exports) == b'{"old":1}'
    assert mapping.notes == ()


@pytest.mark.parametrize(
    ("text", "expected"), [("null", b"{}"), ('{ "b": 1,\n"a": [] }', b'{"a":[],"b":1}')]
)
def test_exports_are_published_in_compact_form(text, expected):
    assert bytes(mapped(exports=text).exports) == expected


def big_exports(size):
    return json.dumps("x" * (size - 2))


def test_exports_of_the_largest_size_are_published():
    mapping = mapped(exports=big_exports(EXPORTS_LIMIT))
    assert (len(bytes(mapping.exports)), mapping.notes) == (EXPORTS_LIMIT, ())


def test_larger_exports_are_cleared_with_a_warning():
    obj = provisioned()
    obj.status.exports = msgspec.Raw(b"{}")
    mapping = mapped(obj, exports=big_exports(EXPORTS_LIMIT + 1))
    obj.status.exports = mapping.exports
    assert b"exports" not in msgspec.json.encode(obj.status)
    (note,) = mapping.notes
    assert (note.reason, note.warning) == ("ExportsNotPublished", True)
    assert str(EXPORTS_LIMIT + 1) in note.note


def test_the_warning_comes_once_and_again_with_a_new_generation():
    exports = big_exports(EXPORTS_LIMIT + 1)
    assert reasons(mapped(exports=exports)) == ["ExportsNotPublished"]
    settled = provisioned()
    read = Conditions([], START, settled.metadata.generation)
    read.set_reason(OutputsValid.OUTPUTS_VALID)
    settled.status.conditions = read.list()
    assert mapped(settled, exports=exports).notes == ()
    settled.metadata.generation = 2
    assert reasons(mapped(settled, exports=exports)) == ["ExportsNotPublished"]


@pytest.mark.parametrize(
    ("state", "healthy", "expected"),
    [
        ("pending", True, ("False", "InstancePending")),
        ("running", True, ("True", "Healthy")),
        ("running", False, ("False", "InstanceUnhealthy")),
        ("degraded", True, ("False", "InstanceDegraded")),
        ("stopped", False, ("False", "InstanceStopped")),
        ("terminated", False, ("False", "InstanceTerminated")),
        ("unknown", True, ("Unknown", "HealthUnknown")),
    ],
)
def test_health_becomes_a_condition(state, healthy, expected):
    value = infrastructure_healthy(Health(state=HealthState(state), healthy=healthy))
    assert (value.status, value.reason) == expected
    assert value.message == value.reason


def test_no_health_is_unknown():
    value = infrastructure_healthy(None)
    assert (value.status, value.reason) == ("Unknown", "HealthUnknown")


@pytest.mark.parametrize(
    ("message", "reasons_", "expected"),
    [
        ("slow", ("a", "b"), "slow; reasons: a, b"),
        ("", ("a",), "reasons: a"),
        ("slow", (), "slow"),
        ("", (), "InstanceDegraded"),
    ],
)
def test_the_modules_words_come_with_the_condition(message, reasons_, expected):
    health = Health(state=HealthState.DEGRADED, healthy=False, message=message, reasons=reasons_)
    assert infrastructure_healthy(health).message == expected


def test_a_healthy_applied_state_makes_the_object_provisioned():
    mapping = mapped()
    assert mapping.provisioned
    assert mapping.outputs_valid == ConditionValue("True", "OutputsValid")
    assert mapping.infrastructure_healthy is not None


@pytest.mark.parametrize("state", ["degraded", "stopped", "unknown"])
def test_any_reading_but_pending_provisions(state):
    assert mapped(health={"state": state, "healthy": False}).provisioned


def test_a_pending_first_apply_does_not_provision():
    mapping = mapped(health={"state": "pending", "healthy": False})
    assert not mapping.provisioned
    assert mapping.infrastructure_healthy == ConditionValue(
        "False", "InstancePending", "InstancePending"
    )


def test_a_state_that_no_apply_finished_does_not_provision():
    mapping = mapped(state_has_hash=False)
    assert not mapping.provisioned
    assert mapping.infrastructure_healthy is None


def test_invalid_outputs_do_not_provision():
    assert not mapped(exports="0.5").provisioned


def test_provisioned_once_is_provisioned_for_ever():
    for mapping in (
        mapped(provisioned(), health={"state": "pending", "healthy": False}),
        mapped(provisioned(), exports="0.5"),
        mapped(provisioned(), state_has_hash=False),
    ):
        assert mapping.provisioned
        assert mapping.infrastructure_healthy is not None


def test_a_provisioned_cluster_without_any_endpoint_waits_for_one():
    value = mapped(provisioned()).endpoint_available
    assert value is not None
    assert (value.status, value.reason) == ("False", "WaitingForEndpoint")


def test_an_unprovisioned_cluster_says_nothing_about_its_endpoint():
    mapping = mapped(health={"state": "pending", "healthy": False})
    assert mapping.endpoint_available is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"control_plane_endpoint": ENDPOINT},
        {"cluster": {"spec": {"controlPlaneEndpoint": {"host": "a", "port": 1}}}},
        {"obj": terraform_cluster(control_plane_endpoint=ControlPlaneEndpoint(host="a", port=1))},
    ],
)
def test_an_endpoint_from_anywhere_is_available(arguments):
    arguments = dict(arguments)
    mapping = mapped(arguments.pop("obj", None), **arguments)
    assert mapping.endpoint_available == ConditionValue("True", "EndpointAvailable")


def test_the_object_itself_is_not_changed():
    obj = terraform_cluster()
    before = msgspec.json.encode(obj)
    mapped(obj, control_plane_endpoint=ENDPOINT, failure_domains='[{"name": "a"}]', exports="{}")
    assert msgspec.json.encode(obj) == before

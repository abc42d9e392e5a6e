"""Decoding the outputs of machines and pools (module-contract.md: Outputs)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model.interface import HealthState
from captfctl.model.machine import AddressType
from captfctl.terraform.contract.outputs_workers import (
    Address,
    Instance,
    decode_machine,
    decode_pool,
)
from tests.contract_module.objects import raw

HEALTHY = '{"state": "running", "healthy": true}'
INVALID = ("False", "OutputsInvalid")
MISSING = ("False", "OutputsMissing")
PENDING = ("Unknown", "OutputsPending")
VALID = ("True", "OutputsValid")


def machine(**outputs):
    texts = {"provider_id": "noop:///a/b"} | outputs
    encoded = {name: json.dumps(value) for name, value in texts.items()}
    return decode_machine(raw({"health": HEALTHY} | encoded))


def pool(**outputs):
    texts = {
        "provider_id": "group",
        "provider_id_list": ["vm-1"],
        "replicas": 1,
        "instances": [{"provider_id": "vm-1"}],
    } | outputs
    encoded = {name: json.dumps(value) for name, value in texts.items()}
    return decode_pool(raw({"health": HEALTHY} | encoded))


def verdict(outputs):
    condition = outputs.findings.condition()
    return condition.status, condition.reason


def message(outputs):
    return outputs.findings.condition().message


def address(kind, text):
    return {"type": kind, "address": text}


def test_a_machine_with_everything():
    outputs = machine(
        addresses=[address("ExternalIP", "1.2.3.4"), address("InternalIP", "10.0.0.1")],
        failure_domain="zone-a",
        interruptible=True,
    )
    assert verdict(outputs) == VALID
    assert outputs.provider_id == "noop:///a/b"
    assert [entry.address for entry in outputs.addresses] == ["10.0.0.1", "1.2.3.4"]
    assert (outputs.failure_domain, outputs.interruptible) == ("zone-a", True)


def test_a_machine_may_leave_out_most():
    outputs = machine()
    assert verdict(outputs) == VALID
    assert outputs.addresses == ()
    assert (outputs.failure_domain, outputs.interruptible) == ("", False)


@pytest.mark.parametrize("text", [{}, {"provider_id": "null"}, {"provider_id": '""'}])
def test_a_machine_without_an_id_is_pending(text):
    outputs = decode_machine(raw({"health": HEALTHY} | text))
    assert verdict(outputs) == PENDING
    assert outputs.findings.concerns("provider_id")


@pytest.mark.parametrize("provider_id", ["x" * 513, "ä" * 257, 42, ["x"], {}, True])
def test_an_id_that_breaks_a_rule(provider_id):
    assert verdict(machine(provider_id=provider_id)) == INVALID


def test_an_id_of_the_longest_length_is_fine():
    assert verdict(machine(provider_id="x" * 512)) == VALID


@pytest.mark.parametrize(
    "entry",
    [
        address("PrivateIP", "10.0.0.1"),
        address("InternalIP", ""),
        address("InternalIP", "x" * 257),
        address(None, "x"),
        {"address": "x"},
        "10.0.0.1",
    ],
)
def test_an_address_that_breaks_a_rule_is_named_by_its_place(entry):
    outputs = machine(addresses=[address("InternalIP", "10.0.0.9"), entry])
    assert verdict(outputs) == INVALID
    assert outputs.addresses == ()
    assert "entry 1" in message(outputs)


def test_every_bad_address_is_told():
    outputs = machine(addresses=["a", address("InternalIP", "x"), "b"])
    assert "entry 0" in message(outputs)
    assert "entry 2" in message(outputs)


def test_an_unknown_type_of_address_may_be_quoted():
    assert "'PrivateIP'" in message(machine(addresses=[address("PrivateIP", "x")]))


def test_256_distinct_addresses_are_the_most():
    def many(count, distinct):
        return [address("InternalIP", f"10.0.0.{i % distinct}") for i in range(count)]

    assert verdict(machine(addresses=many(257, 257))) == INVALID
    fine = machine(addresses=many(300, 100))
    assert (verdict(fine), len(fine.addresses)) == (VALID, 100)


addresses = st.lists(
    st.builds(address, st.sampled_from(list(AddressType)), st.sampled_from(["a", "b", "c"]))
)


@given(addresses, st.randoms())
def test_addresses_come_in_one_order_without_duplicates(entries, random):
    shuffled = entries.copy()
    random.shuffle(shuffled)
    before = json.dumps(shuffled)
    one, other = machine(addresses=entries), machine(addresses=shuffled)
    assert one.addresses == other.addresses
    assert len(set(one.addresses)) == len(one.addresses)
    assert json.dumps(shuffled) == before


def test_addresses_are_ordered_by_type_and_then_by_text():
    order = ["InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "Hostname"]
    entries = [address(kind, text) for kind in reversed(order) for text in ("b", "a")]
    outputs = machine(addresses=entries)
    assert [(a.type, a.address) for a in outputs.addresses] == [
        (kind, text) for kind in order for text in ("a", "b")
    ]


@pytest.mark.parametrize("domain", ["", "x" * 257, 1, []])
def test_a_failure_domain_that_breaks_a_rule(domain):
    outputs = machine(failure_domain=domain)
    assert (verdict(outputs), outputs.failure_domain) == (INVALID, "")


def test_several_problems_are_weighed():
    bad = {"interruptible": "1", "provider_id": "null"}
    assert verdict(decode_machine(raw(bad))) == MISSING
    assert verdict(decode_machine(raw(bad | {"health": HEALTHY}))) == INVALID


def test_an_empty_pool_is_valid():
    outputs = pool(provider_id_list=[], replicas=0, instances=[])
    assert (verdict(outputs), outputs.replicas) == (VALID, 0)


def test_the_ids_of_a_pool_are_sorted_and_distinct():
    outputs = pool(provider_id_list=["vm-2", "vm-1", "vm-2"])
    assert outputs.provider_id_list == ("vm-1", "vm-2")


@pytest.mark.parametrize("entry", ["", "x" * 513, 1, None])
def test_a_bad_id_of_a_pool_is_named_by_its_place(entry):
    outputs = pool(provider_id_list=["vm-1", entry])
    assert (verdict(outputs), outputs.provider_id_list) == (INVALID, ())
    assert "entry 1" in message(outputs)


def test_a_pool_has_at_most_ten_thousand_ids():
    assert verdict(pool(provider_id_list=[f"vm-{i}" for i in range(10_000)])) == VALID
    assert verdict(pool(provider_id_list=[f"vm-{i}" for i in range(10_001)])) == INVALID


@pytest.mark.parametrize("name", ["provider_id_list", "instances"])
def test_a_pool_must_know_its_members(name):
    outputs = pool(**{name: None})
    assert verdict(outputs) == MISSING
    assert name in message(outputs)
    assert verdict(pool(**{name: {}})) == INVALID


def test_replicas_may_be_unknown_for_a_while():
    outputs = pool(replicas=None)
    assert (verdict(outputs), outputs.replicas) == (PENDING, None)


@pytest.mark.parametrize("replicas", [-1, 1.5, 2.0, True, "1", 2**31, 10**30])
def test_replicas_that_break_a_rule(replicas):
    outputs = pool(replicas=replicas)
    assert (verdict(outputs), outputs.replicas) == (INVALID, None)


def test_an_instance_with_everything():
    outputs = pool(
        instances=[
            {
                "provider_id": "vm-1",
                "instance_id": "i-1",
                "addresses": [address("Hostname", "h"), address("InternalIP", "10.0.0.1")],
                "failure_domain": "a",
                "state": "stopped",
                "extra": 1,
            }
        ]
    )
    (instance,) = outputs.instances
    assert instance == Instance(
        provider_id="vm-1",
        instance_id="i-1",
        addresses=(
            Address(type=AddressType.INTERNAL_IP, address="10.0.0.1"),
            Address(type=AddressType.HOSTNAME, address="h"),
        ),
        failure_domain="a",
        state=HealthState.STOPPED,
    )


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"provider_id": ""},
        {"provider_id": "x", "instance_id": ""},
        {"provider_id": "x", "failure_domain": "x" * 257},
        {"provider_id": "x", "state": "booting"},
        {"provider_id": "x", "state": 1},
        {"provider_id": "x", "addresses": [address("Bad", "x")]},
        {"provider_id": "x", "addresses": {}},
        "x",
    ],
)
def test_an_instance_that_breaks_a_rule_is_named_by_its_place(entry):
    outputs = pool(instances=[{"provider_id": "vm-1"}, entry])
    assert (verdict(outputs), outputs.instances) == (INVALID, ())
    assert "entry 1" in message(outputs)


def members(count):
    return [{"provider_id": f"vm-{i}"} for i in range(count)]


def test_more_than_a_thousand_instances_are_cut_off_and_valid():
    outputs = pool(instances=members(1001))
    assert verdict(outputs) == ("True", "InstancesTruncated")
    assert outputs.findings.valid
    assert not outputs.findings.concerns("instances")
    assert len(outputs.instances) == 1000
    assert verdict(pool(instances=members(1001), replicas=None)) == PENDING


def test_an_instance_that_would_be_cut_off_is_checked_too():
    outputs = pool(instances=[*members(1000), {"provider_id": ""}])
    assert verdict(outputs) == INVALID
    assert "entry 1000" in message(outputs)


def test_values_never_show_up_in_messages():
    outputs = pool(
        provider_id={"hunter2": 1},
        provider_id_list=[{"hunter2": 1}],
        replicas="hunter2",
        instances=[{"provider_id": {"hunter2": 1}}],
    )
    assert len(outputs.findings.violations) == 4
    assert "hunter2" not in message(outputs)

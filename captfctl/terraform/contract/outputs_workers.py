"""Decoding the outputs of the machine and machinepool roles (module-contract.md: Outputs)."""

from collections.abc import Iterable
from dataclasses import dataclass

from captfctl.model.interface import HealthState
from captfctl.model.machine import AddressType
from captfctl.terraform.contract.findings import Collector, Findings
from captfctl.terraform.contract.jsontext import Json
from captfctl.terraform.contract.outputs import (
    Health,
    RawOutputs,
    decode_health,
    integer,
    read,
    size,
    token,
)

MAX_PROVIDER_ID = 512
MAX_TEXT = 256
MAX_ADDRESSES = 256
MAX_PROVIDER_IDS = 10_000
MAX_INSTANCES = 1_000
MAX_REPLICAS = 2**31 - 1


_ORDER = {kind: index for index, kind in enumerate(AddressType)}


@dataclass(frozen=True, kw_only=True)
class Address:
    """One address of a machine."""

    type: AddressType
    address: str


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One member of a pool; what the module does not tell is empty."""

    provider_id: str
    instance_id: str = ""
    addresses: tuple[Address, ...] = ()
    failure_domain: str = ""
    state: HealthState | None = None


@dataclass(frozen=True, kw_only=True)
class MachineOutputs:
    """`provider_id` and `failure_domain` are "" for null; `health` None when absent or concerned.
    Addresses are sorted and without duplicates."""

    findings: Findings
    provider_id: str = ""
    addresses: tuple[Address, ...] = ()
    failure_domain: str = ""
    interruptible: bool = False
    health: Health | None = None


@dataclass(frozen=True, kw_only=True)
class MachinePoolOutputs:
    """`replicas` None for null. The list of IDs is sorted and without duplicates; instances keep
    the module's order and end at `MAX_INSTANCES`."""

    findings: Findings
    provider_id: str = ""
    provider_id_list: tuple[str, ...] = ()
    replicas: int | None = None
    instances: tuple[Instance, ...] = ()
    health: Health | None = None


def decode_machine(outputs: RawOutputs) -> MachineOutputs:
    """Never raises: what cannot be used is a finding."""
    found = Collector()
    provider_id = _provider_id(read(outputs, "provider_id", found), found)
    addresses = _machine_addresses(read(outputs, "addresses", found), found)
    failure_domain = read(outputs, "failure_domain", found)
    if problem := _optional_text(failure_domain):
        found.invalid("failure_domain", problem)
    interruptible = read(outputs, "interruptible", found)
    if not isinstance(interruptible, bool | None):
        found.invalid("interruptible", "must be a boolean or null")
    health = decode_health(read(outputs, "health", found), found)
    return MachineOutputs(
        findings=found.findings(),
        provider_id=provider_id,
        addresses=addresses,
        failure_domain=_text(failure_domain) if not found.broken("failure_domain") else "",
        interruptible=interruptible is True,
        health=health,
    )


def decode_pool(outputs: RawOutputs) -> MachinePoolOutputs:
    """Never raises: what cannot be used is a finding."""
    found = Collector()
    provider_id = _provider_id(read(outputs, "provider_id", found), found)
    ids = _provider_ids(read(outputs, "provider_id_list", found), found)
    replicas = _replicas(read(outputs, "replicas", found), found)
    instances = _instances(read(outputs, "instances", found), found)
    health = decode_health(read(outputs, "health", found), found)
    return MachinePoolOutputs(
        findings=found.findings(),
        provider_id=provider_id,
        provider_id_list=ids,
        replicas=replicas,
        instances=instances,
        health=health,
    )


def _provider_id(value: Json, found: Collector) -> str:
    name = "provider_id"
    if value is None or value == "":
        if not found.broken(name):
            found.pending(name)
        return ""
    if not _is_text(value, MAX_PROVIDER_ID):
        found.invalid(name, f"must be a string of 1 to {MAX_PROVIDER_ID} bytes")
        return ""
    return _text(value)


def _provider_ids(value: Json, found: Collector) -> tuple[str, ...]:
    name = "provider_id_list"
    items = _declared_list(value, name, found)
    for index, item in enumerate(items):
        if not _is_text(item, MAX_PROVIDER_ID):
            found.invalid(name, f"entry {index} must be a string of 1 to {MAX_PROVIDER_ID} bytes")
    distinct = {_text(item) for item in items}
    if len(distinct) > MAX_PROVIDER_IDS:
        found.invalid(name, f"has {len(distinct)} entries, at most {MAX_PROVIDER_IDS} are allowed")
    return () if found.broken(name) else tuple(sorted(distinct))


def _replicas(value: Json, found: Collector) -> int | None:
    name = "replicas"
    if value is None:
        if not found.broken(name):
            found.pending(name)
        return None
    number = integer(value)
    if number is None or not 0 <= number <= MAX_REPLICAS:
        found.invalid(name, f"must be an integer from 0 to {MAX_REPLICAS}")
        return None
    return number


def _instances(value: Json, found: Collector) -> tuple[Instance, ...]:
    """Every entry is checked, also those that are then cut off."""
    name = "instances"
    items = _declared_list(value, name, found)
    instances = []
    for index, item in enumerate(items):
        instance, problem = _instance(item)
        if problem:
            found.invalid(name, f"entry {index} {problem}")
        elif instance is not None:
            instances.append(instance)
    if found.broken(name):
        return ()
    if len(instances) > MAX_INSTANCES:
        found.truncated(name)
    return tuple(instances[:MAX_INSTANCES])


def _instance(item: Json) -> tuple[Instance | None, str]:
    """The entry, or what is wrong with it."""
    if not isinstance(item, dict):
        return None, "must be an object"
    if not _is_text(item.get("provider_id"), MAX_PROVIDER_ID):
        return None, f"must have a provider_id of 1 to {MAX_PROVIDER_ID} bytes"
    for field in ("instance_id", "failure_domain"):
        if problem := _optional_text(item.get(field)):
            return None, f"has a {field} that {problem}"
    addresses, problems = _addresses(item.get("addresses"))
    if problems:
        return None, f"has addresses of which {problems[0]}"
    state = item.get("state")
    if state is not None and (not isinstance(state, str) or state not in set(HealthState)):
        shown = token(state) if isinstance(state, str) else "not known"
        return None, f"has the state {shown}; it must be one of {', '.join(HealthState)}"
    return (
        Instance(
            provider_id=_text(item["provider_id"]),
            instance_id=_text(item.get("instance_id")),
            addresses=addresses,
            failure_domain=_text(item.get("failure_domain")),
            state=HealthState(state) if isinstance(state, str) else None,
        ),
        "",
    )


def _machine_addresses(value: Json, found: Collector) -> tuple[Address, ...]:
    addresses, problems = _addresses(value)
    for problem in problems:
        found.invalid("addresses", problem)
    return () if problems else addresses


def _addresses(value: Json) -> tuple[tuple[Address, ...], list[str]]:
    """Sorted and without duplicates, or everything that is wrong."""
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["must be a list of objects"]
    problems, addresses = [], set()
    for index, item in enumerate(value):
        address, problem = _address(item)
        if problem:
            problems.append(f"entry {index} {problem}")
        elif address is not None:
            addresses.add(address)
    if len(addresses) > MAX_ADDRESSES:
        problems.append(f"has {len(addresses)} entries, at most {MAX_ADDRESSES} are allowed")
    return tuple(_sorted(addresses)), problems


def _address(item: Json) -> tuple[Address | None, str]:
    if not isinstance(item, dict):
        return None, "must be an object with type and address"
    kind, address = item.get("type"), item.get("address")
    if not isinstance(kind, str) or kind not in set(AddressType):
        shown = token(kind) if isinstance(kind, str) else "not known"
        return None, f"has the type {shown}; it must be one of {', '.join(AddressType)}"
    if not _is_text(address, MAX_TEXT):
        return None, f"must have an address of 1 to {MAX_TEXT} bytes"
    return Address(type=AddressType(kind), address=_text(address)), ""


def _sorted(addresses: Iterable[Address]) -> list[Address]:
    return sorted(addresses, key=lambda entry: (_ORDER[entry.type], entry.address))


def _declared_list(value: Json, name: str, found: Collector) -> list[Json]:
    """A list that must not be null: the module knows its members or does not know its job."""
    if isinstance(value, list):
        return value
    if value is not None:
        found.invalid(name, "must be a list")
    elif not found.broken(name):
        found.missing(name)
    return []


def _is_text(value: Json, limit: int) -> bool:
    return isinstance(value, str) and 1 <= size(value) <= limit


def _optional_text(value: Json) -> str:
    """What is wrong with a text that may be null."""
    if value is None or _is_text(value, MAX_TEXT):
        return ""
    return f"must be null or a string of 1 to {MAX_TEXT} bytes"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""

"""Decoding a module's outputs: what every role shares, and the cluster's
(module-contract.md: Rules for outputs).

Messages name the output and the rule, never a free-form value: outputs may be secret. Lengths are
bytes of UTF-8.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from captfctl.model.capi import Endpoint
from captfctl.model.interface import HealthState
from captfctl.model.terraform import FailureDomain
from captfctl.terraform.contract.findings import Collector, Findings
from captfctl.terraform.contract.hashing import hashable
from captfctl.terraform.contract.jsontext import Json, NotJson, Number, parse

RawOutputs = Mapping[str, msgspec.Raw]
"""`outputs.<name>.value` of the state document, as its JSON text. Absent equals null."""

MAX_FAILURE_DOMAINS = 100
MAX_HOST = 512
MAX_PORT = 65535
MAX_NAME = 256


@dataclass(frozen=True, kw_only=True)
class Health:
    """The health that a module reports."""

    state: HealthState
    healthy: bool
    message: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClusterOutputs:
    """The outputs of the cluster role. `health` is None when it is absent or concerned; `exports`
    is `{}` for a null one."""

    findings: Findings
    control_plane_endpoint: Endpoint | None = None
    failure_domains: tuple[FailureDomain, ...] = ()
    exports: Json = field(default_factory=dict)
    health: Health | None = None


def decode_cluster(outputs: RawOutputs) -> ClusterOutputs:
    """Never raises: what cannot be used is a finding."""
    found = Collector()
    endpoint = _endpoint(read(outputs, "control_plane_endpoint", found), found)
    domains = _failure_domains(read(outputs, "failure_domains", found), found)
    exports = _exports(read(outputs, "exports", found), found)
    health = decode_health(read(outputs, "health", found), found)
    return ClusterOutputs(
        findings=found.findings(),
        control_plane_endpoint=endpoint,
        failure_domains=domains,
        exports=exports,
        health=health,
    )


def read(outputs: RawOutputs, name: str, found: Collector) -> Json:
    """The output's value; None for an absent one and for one that cannot be read."""
    text = bytes(outputs.get(name, b""))
    if not text:
        return None
    try:
        return parse(text)
    except NotJson as error:
        found.invalid(name, f"cannot be read: {error.what}")
        return None


def decode_health(value: Json, found: Collector) -> Health | None:
    """The one output that every role must report (module-contract.md: Health)."""
    if value is None:
        if not found.broken("health"):
            found.missing("health")
        return None
    if not isinstance(value, dict):
        found.invalid("health", "must be an object with state and healthy")
        return None
    state = _health_state(value.get("state"), found)
    healthy = value.get("healthy")
    if not isinstance(healthy, bool):
        found.invalid("health", "must have a boolean healthy")
    message = value.get("message")
    if not isinstance(message, str | None):
        found.invalid("health", "must have a message that is a string or null")
    reasons = value.get("reasons")
    texts = string_list(reasons)
    if reasons is not None and texts is None:
        found.invalid("health", "must have reasons that are a list of strings or null")
    if found.broken("health") or state is None:
        return None
    return Health(
        state=state,
        healthy=healthy is True,
        message=message if isinstance(message, str) else "",
        reasons=tuple(texts or ()),
    )


def _health_state(value: Json, found: Collector) -> HealthState | None:
    if isinstance(value, str):
        try:
            return HealthState(value)
        except ValueError:
            known = ", ".join(HealthState)
            found.invalid("health", f"has the state {token(value)}; it must be one of {known}")
            return None
    found.invalid("health", f"must have a state that is one of {', '.join(HealthState)}")
    return None


def _endpoint(value: Json, found: Collector) -> Endpoint | None:
    name = "control_plane_endpoint"
    if value is None:
        return None
    if not isinstance(value, dict):
        found.invalid(name, "must be an object with host and port")
        return None
    host, port = value.get("host"), integer(value.get("port"), absent=0)
    host = "" if host is None else host
    if not isinstance(host, str):
        found.invalid(name, "must have a host that is a string")
    elif port is None:
        found.invalid(name, "must have a port that is an integer")
    elif not host and not port:
        return None
    elif not host or not port:
        found.invalid(name, "must have both host and port, or be null")
    elif size(host) > MAX_HOST:
        found.invalid(name, f"has a host of more than {MAX_HOST} bytes")
    elif not 1 <= port <= MAX_PORT:
        found.invalid(name, f"has a port outside 1 to {MAX_PORT}")
    else:
        return Endpoint(host=host, port=port)
    return None


def _failure_domains(value: Json, found: Collector) -> tuple[FailureDomain, ...]:
    name = "failure_domains"
    if value is None:
        return ()
    if not isinstance(value, list):
        found.invalid(name, "must be a list of objects")
        return ()
    if len(value) > MAX_FAILURE_DOMAINS:
        found.invalid(name, f"has {len(value)} entries, at most {MAX_FAILURE_DOMAINS} are allowed")
    domains: dict[str, FailureDomain] = {}
    for index, item in enumerate(value):
        domain, problem = _failure_domain(item)
        if domain is not None and domain.name in domains:
            problem = "repeats the name of an earlier entry"
        if problem:
            found.invalid(f"{name}", f"entry {index} {problem}")
        elif domain is not None:
            domains[domain.name] = domain
    return () if found.broken(name) else tuple(domains.values())


def _failure_domain(item: Json) -> tuple[FailureDomain | None, str]:
    """The entry, or what is wrong with it."""
    if not isinstance(item, dict):
        return None, "must be an object"
    name, control_plane = item.get("name"), item.get("control_plane")
    if not isinstance(name, str) or not 1 <= size(name) <= MAX_NAME:
        return None, f"must have a name of 1 to {MAX_NAME} bytes"
    if not isinstance(control_plane, bool | None):
        return None, "must have a boolean control_plane"
    attributes = item.get("attributes")
    texts: dict[str, str] = {}
    if attributes is not None:
        if not isinstance(attributes, dict):
            return None, "must have attributes that are a map of strings"
        for key, text in attributes.items():
            if not isinstance(text, str):
                return None, "must have attributes that are a map of strings"
            texts[key] = text
    return (
        FailureDomain(name=name, control_plane=control_plane is not False, attributes=texts),
        "",
    )


def _exports(value: Json, found: Collector) -> Json:
    if value is None:
        return {}
    if not hashable(value):
        found.invalid(
            "exports", "holds a number with a fraction or an exponent: use integers or strings"
        )
    return value


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode())


def integer(value: Json, absent: int | None = None) -> int | None:
    """An integer written without fraction and exponent; `absent` for null, None for anything
    else."""
    if value is None:
        return absent
    if isinstance(value, Number) and value.is_integer and len(value.text) <= 20:
        return int(value.text)
    return None


def string_list(value: Json) -> list[str] | None:
    """None when it is not a list of strings."""
    if not isinstance(value, list):
        return None
    texts = [item for item in value if isinstance(item, str)]
    return texts if len(texts) == len(value) else None


def token(text: str) -> str:
    """A word of an enumeration, quoted; anything longer could be a value that went astray."""
    return repr(text) if len(text) <= 32 and text.replace("-", "").isalnum() else "not known"

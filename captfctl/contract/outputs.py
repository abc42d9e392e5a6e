"""Decoding a module's outputs (60 §7).

Messages name the output and the rule, never a free-form value: outputs may be secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from captfctl.contract.jsontext import Json
from captfctl.model.capi import Endpoint
from captfctl.model.conditions import ConditionValue
from captfctl.model.terraform import FailureDomain

RawOutputs = Mapping[str, msgspec.Raw]
"""`outputs.<name>.value` of the state document, as its JSON text. Absent equals null."""


class HealthState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DEGRADED = "degraded"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Health:
    state: HealthState
    healthy: bool
    message: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One broken rule. `reason` is a reason of `OutputsValid`."""

    output: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What is wrong with the outputs of one state (60 §7.2)."""

    missing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    truncated: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        raise NotImplementedError

    def concerns(self, output: str) -> bool:
        """Whether the previous status value of this output is kept."""
        raise NotImplementedError

    def condition(self) -> ConditionValue:
        """`OutputsValid`."""
        raise NotImplementedError


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
    raise NotImplementedError

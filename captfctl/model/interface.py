"""The one table of contract inputs and outputs (module-contract.md: Inputs).

It gives the root module's types and null rules, the reserved variable names and the required
outputs; the linter checks modules against the same rows.
"""

from dataclasses import dataclass
from enum import StrEnum

from captfctl.model.kinds import Role


class HealthState(StrEnum):
    """What a module can report of its infrastructure."""

    PENDING = "pending"
    RUNNING = "running"
    DEGRADED = "degraded"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"


_ALL = frozenset(Role)
_CLUSTER = frozenset({Role.CLUSTER})
_MACHINE = frozenset({Role.MACHINE})
_POOL = frozenset({Role.MACHINE_POOL})
_WORKERS = _MACHINE | _POOL


@dataclass(frozen=True, kw_only=True)
class Input:
    """One contract input. `type` is the Terraform type expression of the root variable."""

    name: str
    type: str
    roles: frozenset[Role]
    nullable: bool = False
    sensitive: bool = False


INPUTS: tuple[Input, ...] = (
    Input(name="captf_contract", type="string", roles=_ALL),
    Input(name="captf_cluster", type="any", roles=_ALL),
    Input(name="captf_object", type="any", roles=_ALL),
    Input(name="captf_tags", type="map(string)", roles=_ALL),
    Input(
        name="control_plane_endpoint",
        type="object({host=string, port=number})",
        roles=_CLUSTER,
        nullable=True,
    ),
    Input(name="kubernetes_version", type="string", roles=_ALL, nullable=True),
    Input(name="control_plane_initialized", type="bool", roles=_CLUSTER),
    Input(
        name="cluster_network",
        type="object({pods=list(string), services=list(string), service_domain=string, "
        "api_server_port=number})",
        roles=_CLUSTER,
        nullable=True,
    ),
    Input(name="captf_cluster_outputs", type="any", roles=_WORKERS),
    Input(name="machine_name", type="string", roles=_MACHINE),
    Input(name="machinepool_name", type="string", roles=_POOL),
    Input(name="bootstrap_data", type="string", roles=_WORKERS, sensitive=True),
    Input(name="bootstrap_format", type="string", roles=_WORKERS),
    Input(name="failure_domain", type="string", roles=_MACHINE, nullable=True),
    Input(name="control_plane", type="bool", roles=_MACHINE),
    Input(name="replicas", type="number", roles=_POOL),
    Input(name="failure_domains", type="list(string)", roles=_POOL),
    Input(name="cluster_failure_domains", type="list(string)", roles=_POOL),
    Input(name="node_labels", type="map(string)", roles=_POOL),
    Input(name="autoscaling", type="object({enabled=bool, min=number, max=number})", roles=_POOL),
)

REQUIRED_OUTPUTS: dict[Role, tuple[str, ...]] = {
    Role.CLUSTER: ("control_plane_endpoint", "failure_domains", "exports", "health"),
    Role.MACHINE: ("provider_id", "addresses", "failure_domain", "interruptible", "health"),
    Role.MACHINE_POOL: ("provider_id", "provider_id_list", "replicas", "instances", "health"),
}

_BY_ROLE = {role: tuple(row for row in INPUTS if role in row.roles) for role in Role}
_NAMES = {role: frozenset(row.name for row in rows) for role, rows in _BY_ROLE.items()}


def inputs_of(role: Role) -> tuple[Input, ...]:
    """The rows of one role, in the contract's order."""
    return _BY_ROLE[role]


def input_names(role: Role) -> frozenset[str]:
    return _NAMES[role]

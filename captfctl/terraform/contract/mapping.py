"""What a cluster's outputs change on its objects (module-contract.md: What outputs change)."""

from dataclasses import dataclass, field

import msgspec

from captfctl.model import keys
from captfctl.model.capi import Cluster, Endpoint
from captfctl.model.conditions import ConditionValue, Type, find
from captfctl.model.events import EventReason, Note
from captfctl.model.interface import HealthState
from captfctl.model.reasons import EndpointAvailable, InfrastructureHealthy
from captfctl.model.terraform import NO_JSON, FailureDomain, TerraformCluster
from captfctl.terraform.contract.findings import Findings
from captfctl.terraform.contract.jsontext import canonical_any
from captfctl.terraform.contract.outputs import ClusterOutputs, Health

EXPORTS_LIMIT = 65_536

_HEALTH = {
    HealthState.PENDING: InfrastructureHealthy.INSTANCE_PENDING,
    HealthState.DEGRADED: InfrastructureHealthy.INSTANCE_DEGRADED,
    HealthState.STOPPED: InfrastructureHealthy.INSTANCE_STOPPED,
    HealthState.TERMINATED: InfrastructureHealthy.INSTANCE_TERMINATED,
    HealthState.UNKNOWN: InfrastructureHealthy.HEALTH_UNKNOWN,
}


@dataclass(frozen=True, kw_only=True)
class ClusterMapping:
    """The new values; the caller writes them to the object."""

    outputs_valid: ConditionValue
    infrastructure_healthy: ConditionValue | None
    """None keeps the present one: no apply has succeeded yet."""
    endpoint_available: ConditionValue | None
    """None leaves the condition as it is."""
    provisioned: bool
    endpoint: Endpoint | None
    """None leaves `spec.controlPlaneEndpoint`; else it is written together with the annotation
    `captf.io/endpoint-source: module`."""
    failure_domains: tuple[FailureDomain, ...]
    exports: msgspec.Raw = field(repr=False)
    """Compact JSON for `status.exports`; `NO_JSON` clears it."""
    notes: tuple[Note, ...] = ()
    """Events of the mapping itself; `Provisioned` is the caller's."""


def map_cluster(
    obj: TerraformCluster,
    cluster: Cluster | None,
    outputs: ClusterOutputs,
    *,
    state_has_hash: bool,
    endpoint_input_was_null: bool,
) -> ClusterMapping:
    """Everything the state's outputs say about the objects.

    `endpoint_input_was_null`: the last rendered `control_plane_endpoint` input (attempt record) was
    null. Pure: `obj` is not changed.
    """
    was_provisioned = bool(obj.status.initialization and obj.status.initialization.provisioned)
    provisioned = was_provisioned or latches(
        outputs.findings, outputs.health, state_has_hash=state_has_hash
    )
    endpoint = _new_endpoint(obj, outputs, endpoint_input_was_null)
    domains = _domains(obj, outputs)
    exports, too_large = _exports(obj, outputs)
    notes = []
    if endpoint is not None:
        notes.append(
            EventReason.CONTROL_PLANE_ENDPOINT_SET.says(
                f"the module reports {endpoint.host}:{endpoint.port}"
            )
        )
    if list(domains) != obj.status.failure_domains:
        notes.append(EventReason.FAILURE_DOMAINS_CHANGED.says(_domains_text(domains)))
    if too_large and _worth_saying(obj, provisioned and not was_provisioned):
        notes.append(_too_large_note(too_large))
    return ClusterMapping(
        outputs_valid=outputs.findings.condition(),
        infrastructure_healthy=(
            infrastructure_healthy(outputs.health) if state_has_hash or was_provisioned else None
        ),
        endpoint_available=_endpoint_available(obj, cluster, outputs, provisioned),
        provisioned=provisioned,
        endpoint=endpoint,
        failure_domains=domains,
        exports=exports,
        notes=tuple(notes),
    )


def latches(findings: Findings, health: Health | None, *, state_has_hash: bool) -> bool:
    """Whether this state makes the object provisioned, once and for ever
    (module-contract.md: Provisioned)."""
    return (
        state_has_hash
        and findings.valid
        and health is not None
        and health.state is not HealthState.PENDING
    )


def infrastructure_healthy(health: Health | None) -> ConditionValue:
    """`InfrastructureHealthy` for what the module reports; None is an absent, null or invalid
    health (module-contract.md: Health)."""
    if health is None:
        return InfrastructureHealthy.HEALTH_UNKNOWN.says()
    reason = InfrastructureHealthy.INSTANCE_UNHEALTHY
    if health.state is not HealthState.RUNNING:
        reason = _HEALTH[health.state]
    elif health.healthy:
        reason = InfrastructureHealthy.HEALTHY
    parts = [health.message] if health.message else []
    if health.reasons:
        parts.append(f"reasons: {', '.join(health.reasons)}")
    return reason.says("; ".join(parts) or reason)


def _new_endpoint(
    obj: TerraformCluster, outputs: ClusterOutputs, input_was_null: bool
) -> Endpoint | None:
    present = obj.spec.control_plane_endpoint
    if (
        keys.ENDPOINT_SOURCE in obj.metadata.annotations
        or not input_was_null
        or (present is not None and present.valid)
    ):
        return None
    return outputs.control_plane_endpoint


def _domains(obj: TerraformCluster, outputs: ClusterOutputs) -> tuple[FailureDomain, ...]:
    if outputs.findings.concerns("failure_domains"):
        return tuple(obj.status.failure_domains)
    return outputs.failure_domains


def _domains_text(domains: tuple[FailureDomain, ...]) -> str:
    names = ", ".join(domain.name for domain in domains) or "none"
    return f"{len(domains)} failure domains: {names}"


def _exports(obj: TerraformCluster, outputs: ClusterOutputs) -> tuple[msgspec.Raw, int]:
    """What to publish, and the size of exports that are too large for it."""
    if outputs.findings.concerns("exports"):
        return obj.status.exports, 0
    text = canonical_any(outputs.exports).encode()
    return (msgspec.Raw(text), 0) if len(text) <= EXPORTS_LIMIT else (NO_JSON, len(text))


def _worth_saying(obj: TerraformCluster, just_provisioned: bool) -> bool:
    """Once: when the exports disappear, and again after every change of the object's spec.

    The condition of the outputs tells which generation they were read for. The object's
    `observedGeneration` does not: it moves first, and in passes that read no outputs.
    """
    read = find(obj.status.conditions, Type.OUTPUTS_VALID)
    return (
        just_provisioned
        or bool(bytes(obj.status.exports))
        or read is None
        or read.observed_generation != obj.metadata.generation
    )


def _too_large_note(found: int) -> Note:
    return EventReason.EXPORTS_NOT_PUBLISHED.says(
        f"the exports have {found} bytes and are not shown in status.exports, which holds "
        f"{EXPORTS_LIMIT}; machines and pools still get them"
    )


def _endpoint_available(
    obj: TerraformCluster, cluster: Cluster | None, outputs: ClusterOutputs, provisioned: bool
) -> ConditionValue | None:
    known = (
        obj.spec.control_plane_endpoint,
        outputs.control_plane_endpoint,
        cluster.spec.control_plane_endpoint if cluster else None,
    )
    if any(endpoint is not None and endpoint.valid for endpoint in known):
        return EndpointAvailable.ENDPOINT_AVAILABLE.says()
    if provisioned:
        return EndpointAvailable.WAITING_FOR_ENDPOINT.says(
            "neither the module nor the user gave an endpoint"
        )
    return None

"""`TerraformPlan`: a change that waits for a person (plans.md: The kind).

The manager writes everything but the approval, which a person adds. What happens to a plan is in
`captfctl.terraform.plans`; here is what it is and how its phase follows from it.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, Final

import msgspec

from captfctl.model import keys, names
from captfctl.model.condition_types import ConditionValue
from captfctl.model.kinds import CLUSTER, MACHINE_POOL
from captfctl.model.meta import ApiObject, Part
from captfctl.model.reasons import PlanApproved, PlanReady, Reason
from captfctl.model.schema import ATOMIC, NOT_EMPTY, Name, Schema, cel, rule
from captfctl.model.status import Conditions
from runner import wire

RESOURCES_MAX: Final = 50
RESOURCE_MAX: Final = 600
APPROVER_MAX: Final = 512
TARGET_KINDS: Final = (CLUSTER.name, MACHINE_POOL.name)
"""The kinds whose changes may wait for a person."""


class PlanReason(StrEnum):
    """What made the change wait."""

    MANUAL = "Manual"
    DESTRUCTIVE = "Destructive"
    EXPORTS_CHANGE = "ExportsChange"

    @property
    def target_kind(self) -> str:
        """The kind of the objects whose plans have it."""
        return MACHINE_POOL.name if self is PlanReason.EXPORTS_CHANGE else CLUSTER.name


class PlanPhase(StrEnum):
    """How far a plan has come."""

    PENDING = "Pending"
    APPROVED = "Approved"
    APPLIED = "Applied"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"

    @property
    def terminal(self) -> bool:
        """Whether it is the plan's last."""
        return self not in (PlanPhase.PENDING, PlanPhase.APPROVED)


TERMINAL: Final = tuple(phase for phase in PlanPhase if phase.terminal)

Count = Annotated[int, rule(minimum=0)]


class PlanTarget(Part):
    """The object whose change it is."""

    kind: Annotated[str, rule(enum=list(TARGET_KINDS))]
    name: Name

    @property
    def shown(self) -> str:
        """As commands name it: `terraformcluster/web`."""
        return f"{self.kind.lower()}/{self.name}"


class PlanSummary(Part):
    """What the plan would do, without any value of it."""

    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    create: Count
    update: Count
    replace: Count
    """Resources that are deleted and created again; they count nowhere else."""
    delete: Count
    imported: Count = msgspec.field(name="import", default=0)
    move: Count = 0
    forget: Count = 0
    output_changes: Count = 0
    resources: Annotated[
        list[str],
        rule(
            maxItems=RESOURCES_MAX,
            items={"minLength": 1, "maxLength": RESOURCE_MAX},
            **ATOMIC,
        ),
    ] = msgspec.field(default_factory=list)
    """Addresses, each with what happens to it, such as `aws_instance.a (replace)`."""
    truncated: bool = False
    """Whether more resources change than are listed."""

    @classmethod
    def of(cls, plan: wire.Plan) -> "PlanSummary":
        """What a run said about its plan, within the limits of the kind."""
        entries = [entry[:RESOURCE_MAX] for entry in sorted(plan.resources, key=_address) if entry]
        return cls(
            create=plan.create,
            update=plan.update,
            replace=plan.replace,
            delete=plan.delete,
            imported=plan.imported,
            move=plan.move,
            forget=plan.forget,
            output_changes=plan.output_changes,
            resources=entries[:RESOURCES_MAX],
            truncated=plan.truncated or len(entries) > RESOURCES_MAX,
        )

    @property
    def destructive(self) -> bool:
        """Whether it deletes or replaces something."""
        return self.replace + self.delete > 0

    @property
    def counts(self) -> str:
        """The counts in words."""
        return wire.Plan(
            create=self.create,
            update=self.update,
            replace=self.replace,
            delete=self.delete,
            output_changes=self.output_changes,
            imported=self.imported,
            move=self.move,
            forget=self.forget,
        ).counts


def _address(entry: str) -> str:
    return entry.rpartition(" (")[0] or entry


def _fixed(field: str) -> Schema:
    message = f"{field} is immutable: only approved and approvedBy of a plan are ever set"
    return cel(f"self.{field} == oldSelf.{field}", message, f".{field}")


_IS_APPROVED = "(has(self.approved) && self.approved)"
_WAS_APPROVED = "(has(oldSelf.approved) && oldSelf.approved)"


class TerraformPlanSpec(Part):
    # Who approves is an admission policy: a schema does not know who asks.
    SCHEMA: ClassVar[Schema] = {
        "x-kubernetes-validations": [
            *map(_fixed, ("targetRef", "planHash", "inputsHash", "reason", "summary")),
            cel(
                f"(self.reason == '{PlanReason.EXPORTS_CHANGE}') == "
                f"(self.targetRef.kind == '{MACHINE_POOL.name}')",
                f"a plan of a {MACHINE_POOL.name} has the reason {PlanReason.EXPORTS_CHANGE}, and "
                "no other plan has it",
                ".reason",
            ),
            cel(
                f"!{_IS_APPROVED} || has(self.approvedBy)",
                "approvedBy must name who approves: set it together with approved",
                ".approvedBy",
            ),
            cel(
                f"{_IS_APPROVED} || !has(self.approvedBy)",
                "approvedBy must not be set without approved: true",
                ".approvedBy",
            ),
            cel(
                f"!{_WAS_APPROVED} || ({_IS_APPROVED} && has(self.approvedBy) && "
                "has(oldSelf.approvedBy) && self.approvedBy == oldSelf.approvedBy)",
                "an approval is neither withdrawn nor changed",
                ".approved",
            ),
        ]
    }

    target_ref: PlanTarget
    plan_hash: Annotated[str, rule(minLength=1, maxLength=128)]
    """Keyed fingerprint of the plan, values included: another plan has another one."""
    inputs_hash: Annotated[str, rule(minLength=1, maxLength=128)]
    """Hash of the inputs that the plan was made from; for ExportsChange without the pool's
    bootstrap data."""
    reason: PlanReason
    """What made the change wait: the apply policy Manual, something that would be deleted or
    replaced, or changed exports of the cluster."""
    summary: PlanSummary
    approved: bool = False
    """Set it to true, together with approvedBy, to let the plan be applied."""
    approved_by: Annotated[str, rule(minLength=1, maxLength=APPROVER_MAX)] = ""
    """User name of who approved it."""


class TerraformPlanStatus(Part):
    SCHEMA: ClassVar[Schema] = NOT_EMPTY

    phase: PlanPhase | None = None
    observed_generation: Annotated[int, rule(minimum=1)] = 0
    conditions: Conditions = msgspec.field(default_factory=list)


class TerraformPlan(ApiObject, kw_only=True):
    """A change of infrastructure that waits for an approval, or waited for one."""

    spec: TerraformPlanSpec
    status: TerraformPlanStatus = msgspec.field(default_factory=TerraformPlanStatus)

    @property
    def phase(self) -> PlanPhase:
        """A terminal phase is recorded by the label, because a move drops the status
        (plans.md: Phases)."""
        label = self.metadata.labels.get(keys.PLAN_PHASE, "")
        if label in TERMINAL:
            return PlanPhase(label)
        return PlanPhase.APPROVED if self.spec.approved else PlanPhase.PENDING

    @property
    def live(self) -> bool:
        """Whether it may still be applied."""
        return not self.phase.terminal

    @property
    def reason_fits(self) -> bool:
        """Whether the manager makes plans of that reason for objects of the target's kind. Where it
        does not, an approval would allow what nobody looked at: what it counts for follows from the
        reason."""
        return self.spec.reason.target_kind == self.spec.target_ref.kind

    def is_for(self, kind: str, name: str, uid: str) -> bool:
        """Whether it is a plan of exactly this object, not of an earlier one of the name."""
        ref, controller = self.spec.target_ref, self.metadata.controller
        owned = controller is not None and bool(uid) and controller.uid == uid
        return owned and (ref.kind, ref.name) == (kind, name)


def plans_of(plans: Iterable[TerraformPlan], kind: str, name: str, uid: str) -> list[TerraformPlan]:
    """The plans of one object among those of its namespace, newest first."""
    own = [plan for plan in plans if plan.is_for(kind, name, uid) and plan.reason_fits]
    return sorted(own, key=age_and_name, reverse=True)


def age_and_name(plan: ApiObject) -> tuple[float, str]:
    """What plans are ordered by: when they were created, then their names."""
    created = plan.metadata.creation_timestamp
    return created.timestamp() if created else 0.0, plan.metadata.name


def live_plan(newest_first: Iterable[TerraformPlan]) -> TerraformPlan | None:
    """The one plan of an object that may still be applied."""
    return next((plan for plan in newest_first if plan.live), None)


def plan_labels(
    phase: PlanPhase, reason: PlanReason, summary: PlanSummary, cluster: str
) -> dict[str, str]:
    """The labels of a plan; `cluster` is empty when the Cluster's name is unknown."""
    labels = {
        keys.MANAGED: keys.TRUE,
        keys.PLAN_PHASE: phase.value,
        keys.PLAN_REASON: reason.value,
        keys.DESTRUCTIVE: keys.TRUE if summary.destructive else keys.FALSE,
    }
    return {**labels, keys.CLUSTER_NAME: names.label_value(cluster)} if cluster else labels


def plan_conditions(
    plan: TerraformPlan, phase: PlanPhase, ground: str = ""
) -> tuple[ConditionValue, ConditionValue]:
    """`Ready` and `Approved` of a plan in a phase. `ground` says why it came to a terminal one."""
    ready = _READY[phase]
    approval, said = _approval(plan, phase)
    return ready.says(ground or ready.meaning), approval.says(said)


_READY: Final = {
    PlanPhase.PENDING: PlanReady.PENDING,
    PlanPhase.APPROVED: PlanReady.APPROVED,
    PlanPhase.APPLIED: PlanReady.APPLIED,
    PlanPhase.FAILED: PlanReady.FAILED,
    PlanPhase.SUPERSEDED: PlanReady.SUPERSEDED,
}


def _approval(plan: TerraformPlan, phase: PlanPhase) -> tuple[Reason, str]:
    by = f"approved by {plan.spec.approved_by}" if plan.spec.approved_by else "approved"
    if phase is PlanPhase.PENDING:
        return PlanApproved.PENDING, (
            "not approved: set spec.approved to true and spec.approvedBy to your user name, "
            "or run captfctl approve"
        )
    if phase is not PlanPhase.SUPERSEDED:
        return PlanApproved.APPROVED, by
    if plan.spec.approved:
        return PlanApproved.APPROVAL_IGNORED, f"{by}, but superseded before it was applied"
    return PlanApproved.NOT_APPROVED, "superseded before anybody approved it"

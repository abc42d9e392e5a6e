"""Writing plans: making them, moving them on, removing the oldest (plans.md: Writes).

The phase is on the label before it is in the status: a terminal one there is final, whatever
becomes of the rest. Each write names the version that it was decided on.
"""

import contextlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound
from captfctl.model import keys
from captfctl.model.conditions import Conditions, ConditionValue, Type
from captfctl.model.conditions import find as condition_of
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.plan import (
    PlanPhase,
    PlanTarget,
    TerraformPlan,
    TerraformPlanSpec,
    TerraformPlanStatus,
    plan_conditions,
    plan_labels,
    plans_of,
)
from captfctl.model.resources import TERRAFORM_PLANS
from captfctl.terraform.plans.drafts import Draft, Plans

KEPT: Final = 10
"""So many plans that came to an end stay, for people to look up."""

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Written:
    """A plan as it is after a write. `made`: this very write made it."""

    plan: TerraformPlan
    made: bool


@dataclass(frozen=True, slots=True)
class PlanStore:
    """The plans of one object, behind a door."""

    door: Door
    owner: Owner
    now: datetime

    def read(self, name: str) -> TerraformPlan | None:
        """The object's plan of that name, read live."""
        owner = self.owner
        plan = find(self.door, TERRAFORM_PLANS, owner.namespace, name)
        found = plans_of([plan] if plan is not None else [], owner.kind, owner.name, owner.uid)
        return found[0] if found else None

    def make(self, draft: Draft) -> Written:
        """Create the plan, or find the one that an earlier pass made of the same run.

        Raises `Conflict` where an earlier object of the target's name left one that goes soon.
        """
        try:
            made = self.door.create(TERRAFORM_PLANS, self._new(draft), self.owner.namespace)
        except AlreadyExists:
            found = self.read(draft.name)
            if found is None:
                raise Conflict(
                    f"TerraformPlan {draft.name} belongs to an earlier object of this name"
                ) from None
            return Written(found, made=False)
        return Written(self.show(made, PlanPhase.PENDING), made=True)

    def _new(self, draft: Draft) -> TerraformPlan:
        owner = self.owner
        return TerraformPlan(
            api_version=TERRAFORM_PLANS.api_version,
            kind=TERRAFORM_PLANS.kind,
            metadata=ObjectMeta(
                name=draft.name,
                namespace=owner.namespace,
                labels=plan_labels(PlanPhase.PENDING, draft.reason, draft.summary, owner.cluster),
                owner_references=[owner.owner_reference(controller=True)],
            ),
            spec=TerraformPlanSpec(
                target_ref=PlanTarget(kind=owner.kind, name=owner.name),
                plan_hash=draft.plan_hash,
                inputs_hash=draft.inputs_hash,
                reason=draft.reason,
                summary=draft.summary,
            ),
        )

    def move(
        self, plan: TerraformPlan, phase: PlanPhase, message: str = ""
    ) -> TerraformPlan | None:
        """Bring the plan to a phase: the label, then the status.

        None when there is nothing to tell: it is gone, or another writer ended it. An approval that
        lands meanwhile is part of what is written.
        """
        for _ in range(_TRIES):
            try:
                labelled = self._label(plan, phase)
                return self.show(labelled, phase, message)
            except NotFound:
                return None
            except Conflict:
                found = self.read(plan.metadata.name)
                if found is None or not found.live:
                    return None
                plan = found
        raise Conflict(f"TerraformPlan {plan.metadata.name} keeps changing while it is written")

    def _label(self, plan: TerraformPlan, phase: PlanPhase) -> TerraformPlan:
        if plan.metadata.labels.get(keys.PLAN_PHASE) == phase:
            return plan
        return self._patch(plan, {"metadata": {"labels": {keys.PLAN_PHASE: phase.value}}})

    def show(self, plan: TerraformPlan, phase: PlanPhase, message: str = "") -> TerraformPlan:
        """Write the status that goes with a phase, where it says something else. Without a
        `message`, what was said about a phase stays."""
        meta = plan.metadata
        shown = Conditions(plan.status.conditions, self.now, meta.generation)
        ready, approved = plan_conditions(plan, phase, message)
        for kind, value in ((Type.READY, ready), (Type.APPROVED, approved)):
            condition = value if message else _kept(plan, kind, value)
            shown.set(kind, condition.status, condition.reason, condition.message)
        status = TerraformPlanStatus(
            phase=phase, observed_generation=meta.generation, conditions=shown.list()
        )
        if status == plan.status:
            return plan
        try:
            return self._patch(plan, {"status": msgspec.to_builtins(status)}, "status")
        except Conflict:
            found = self.read(meta.name)
            if found is None:
                raise NotFound(f"TerraformPlan {meta.name} is gone") from None
            return self.show(found, found.phase, message if found.phase is phase else "")

    def _patch(
        self, plan: TerraformPlan, patch: dict[str, object], subresource: str = ""
    ) -> TerraformPlan:
        meta = plan.metadata
        return self.door.patch(
            TERRAFORM_PLANS,
            meta.name,
            meta.namespace,
            patch,
            resource_version=meta.resource_version,
            subresource=subresource,
        )

    def prune(self, plans: Plans) -> Plans:
        """Delete the oldest of those that came to an end. A live one always stays."""
        ended = [plan for plan in plans.all if not plan.live]
        gone = set()
        for plan in ended[KEPT:]:
            meta = plan.metadata
            with contextlib.suppress(NotFound):
                self.door.delete(TERRAFORM_PLANS, meta.name, meta.namespace, uid=meta.uid)
            gone.add(meta.name)
        return Plans(tuple(plan for plan in plans.all if plan.metadata.name not in gone))


def _kept(plan: TerraformPlan, kind: Type, value: ConditionValue) -> ConditionValue:
    """What the condition says already, if that is about the same; else the value."""
    found = condition_of(plan.status.conditions, kind)
    if found is None or (found.status, found.reason) != (value.status, value.reason):
        return value
    return ConditionValue.of(found)

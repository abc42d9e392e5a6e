"""What applies would do to what exists, who approves it, and what must hold for that."""

import contextlib
import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.kinds import MACHINE, MACHINE_POOL
from captfctl.model.plan import PlanReason, TerraformPlan
from captfctl.model.reasons import PlanApproved
from captfctl.model.resources import TERRAFORM_CLUSTERS, TERRAFORM_PLANS
from captfctl.model.terraform import ApplyPolicy
from runner import wire
from tests.simulation.course import Broken
from tests.support.fake_runner import suffix_of

REPLACING = ("eu-3", "tainted")
"""Going there, or coming from there, replaces what exists."""


@dataclass(frozen=True)
class Effect:
    """What an apply would do."""

    before: str
    after: str
    exports: tuple[str, str]
    by_hand: int

    @property
    def empty(self) -> bool:
        return self.before == self.after and self.exports[0] == self.exports[1] and not self.by_hand

    @property
    def destructive(self) -> bool:
        moves = self.before != self.after and {self.before, self.after} & set(REPLACING)
        reaches = self.exports[0] != self.exports[1] and {"eu-2", *REPLACING} & set(self.exports)
        return bool(self.before) and bool(moves or reaches)

    @property
    def fingerprint(self) -> str:
        if self.empty:
            return wire.EMPTY_PLAN
        return f"p2:{hashlib.sha256(repr(self).encode()).hexdigest()}"

    def result(self) -> dict[str, Any]:
        """As a run reports it."""
        action = "replace" if self.destructive else "update" if self.before else "create"
        counts = {"create": 0, "update": 0, "replace": 0, "delete": 0}
        if self.empty:
            return {"hash": self.fingerprint, **counts}
        return {"hash": self.fingerprint, **counts, action: 1, "resources": [f"t.a ({action})"]}


class Planning:
    """`got_through`: suffixes of objects of which an apply succeeded. `by_hand` counts what was
    changed outside since the last apply."""

    def __init__(self, door: Door, rng: random.Random, exists: Mapping[str, str]) -> None:
        self._door, self._rng, self._exists = door, rng, exists
        self.by_hand: dict[str, int] = {}
        self.exports: dict[str, str] = {}
        self.got_through: set[str] = set()
        self._approved: set[tuple[str, str]] = set()
        self._ended: dict[str, str] = {}

    # Runs.

    def effect(self, job: Job, values: Mapping[str, Any]) -> Effect:
        """What an apply of these inputs would do now."""
        suffix = suffix_of(job)
        given = values.get("captf_cluster_outputs") or {}
        wanted = given.get("region", "") if _kind(job) == MACHINE_POOL.name else ""
        after = values.get("region") or values.get("bootstrap_data", "")
        exports = (self.exports.get(suffix, wanted), wanted)
        before = self._exists.get(suffix, "")
        return Effect(before, after, exports, self.by_hand.get(suffix, 0) if before else 0)

    def stopped_by(self, job: Job, effect: Effect) -> str:
        """The kind of error with which the runner stops before the apply; empty: it goes on."""
        arguments = _arguments(job)
        expected = arguments.get("--expect-plan", "")
        if expected:
            return wire.PLAN_CHANGED if effect.fingerprint != expected else ""
        if "--guard-deletes" not in arguments or not effect.destructive:
            return ""
        allowed = arguments.get("--allow-deletes-hash", "")
        return "" if allowed and allowed == arguments["--inputs-hash"] else wire.BLOCKED

    def carried_out(self, job: Job, effect: Effect, *, whole: bool) -> None:
        """Raises `Broken` if nobody approved that."""
        suffix = suffix_of(job)
        self._check_approved(job, suffix, effect)
        old, new = effect.exports
        if whole:
            self.by_hand.pop(suffix, None)
            self.got_through.add(suffix)
            self.exports[suffix] = new
        else:
            self.by_hand[suffix] = self.by_hand.get(suffix, 0) + 1
            self.exports[suffix] = "tainted" if old != new else old

    def _check_approved(self, job: Job, suffix: str, effect: Effect) -> None:
        if effect.empty or suffix not in self.got_through or _kind(job) == MACHINE.name:
            return
        if _kind(job) == MACHINE_POOL.name:
            approval = _arguments(job).get("--inputs-hash", "")
            if effect.destructive and (suffix, approval) not in self._approved:
                raise Broken(f"{job.metadata.name} replaces members unasked: {effect}")
            return
        if not (effect.destructive or self._manual(job)):
            return
        if (suffix, effect.fingerprint) not in self._approved:
            raise Broken(f"{job.metadata.name} applies what nobody approved: {effect}")

    def _manual(self, job: Job) -> bool:
        owner = job.metadata.controller
        obj = self._door.get(TERRAFORM_CLUSTERS, owner.name, job.metadata.namespace)
        return obj.spec.apply_policy is ApplyPolicy.MANUAL

    # People.

    def approve(self, plan: TerraformPlan) -> bool:
        """Somebody approves a plan as it is, if it waits."""
        if not plan.live or plan.spec.approved:
            return False
        spec, meta = plan.spec, plan.metadata
        approval = {"spec": {"approved": True, "approvedBy": "jane"}}
        version = meta.resource_version
        with contextlib.suppress(Conflict, NotFound):
            self._door.patch(
                TERRAFORM_PLANS, meta.name, meta.namespace, approval, resource_version=version
            )
            bound = spec.inputs_hash if spec.reason is PlanReason.EXPORTS_CHANGE else spec.plan_hash
            self._approved.add((_suffix_of_target(plan), bound))
            return True
        return False

    def plans(self) -> list[TerraformPlan]:
        return self._door.list(TERRAFORM_PLANS).items

    # What must hold.

    def check(self) -> None:
        """A plan that came to an end stays there."""
        for plan in self.plans():
            if not plan.live:
                uid, phase = plan.metadata.uid, plan.phase
                if self._ended.setdefault(uid, phase) != phase:
                    raise Broken(f"{plan.metadata.name} was {self._ended[uid]} and is {phase}")

    def unfinished(self, namespace: str, name: str) -> list[str]:
        """What is still to happen to the plans of an object once all is quiet."""
        left = []
        for plan in self.plans():
            if (plan.metadata.namespace, plan.spec.target_ref.name) != (namespace, name):
                continue
            if plan.live:
                left.append(f"{name}: {plan.metadata.name} is {plan.phase}")
            elif plan.phase == "Superseded" and plan.spec.approved and not _told(plan):
                left.append(f"{name}: the approval of {plan.metadata.name} is lost")
        return left


def _told(plan: TerraformPlan) -> bool:
    return any(c.reason == PlanApproved.APPROVAL_IGNORED for c in plan.status.conditions)


def _suffix_of_target(plan: TerraformPlan) -> str:
    target = plan.spec.target_ref
    return names.state_suffix(target.kind, plan.metadata.namespace, target.name)


def _kind(job: Job) -> str:
    return job.metadata.labels[keys.OWNER_KIND]


def _arguments(job: Job) -> dict[str, str]:
    (container,) = job.spec.template.spec.containers
    return {name: value for name, _, value in (text.partition("=") for text in container.args)}


def values_of(data: Mapping[str, bytes]) -> dict[str, Any]:
    """The inputs that a run is given."""
    found: dict[str, Any] = json.loads(data["terraform.tfvars.json"])
    return found

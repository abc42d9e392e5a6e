"""What is known of a plan that somebody wants to approve. No Secret is read."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from captfctl.approvals.refused import Refused, Rule, malformed
from captfctl.cluster.door import Door, find
from captfctl.cluster.errors import ApiError, Forbidden
from captfctl.errors import nearest
from captfctl.model import keys, names
from captfctl.model.core import Review
from captfctl.model.kinds import CLUSTER
from captfctl.model.machine import TerraformMachinePool
from captfctl.model.meta import PartialObject
from captfctl.model.plan import TERMINAL, PlanTarget, TerraformPlan, age_and_name, live_plan
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import (
    JOBS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_PLANS,
)
from captfctl.model.terraform import TerraformCluster

PLANS = TERRAFORM_PLANS.untyped()
NOT_ENDED = f"{keys.PLAN_PHASE} notin ({','.join(TERMINAL)})"

_REVIEW = Resource(
    "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False, Review
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asks for: to approve the plan of this name, or the live one of a target.

    `expect_hash`: the plan must have this hash; empty: any. `by`: who approves, as far as it was
    said. `allow_destructive`, `yes`: what need not be confirmed any more.
    """

    namespace: str
    plan: str = ""
    kind: str = ""
    name: str = ""
    expect_hash: str = ""
    by: str = ""
    allow_destructive: bool = False
    yes: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Who:
    """The user who makes the requests; `problem` says why that is not known."""

    name: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A plan and what decides whether it can be approved.

    `target` is None when it does not exist or, with `unreadable`, when it could not be read. `live`
    is the target's plan that may be applied. `job` made the plan; empty when that is not known.
    """

    plan: TerraformPlan
    target: TerraformCluster | TerraformMachinePool | None
    unreadable: str
    live: TerraformPlan | None
    who: Who
    job: str


def own_user(door: Door) -> Who:
    """Who a server takes us for."""
    review = Review(api_version=_REVIEW.api_version, kind=_REVIEW.kind)
    try:
        answer = door.create(_REVIEW, review)
    except Forbidden as refused:
        return Who(problem=str(refused))
    return Who(str(answer.status.get("userInfo", {}).get("username", "")))


def read(door: Door, request: Request, who: Who) -> Evidence:
    """Raises `Refused` when there is no such plan, or when it is malformed."""
    return _Reader(door, request.namespace).read(request, who)


class _Reader:
    def __init__(self, door: Door, namespace: str) -> None:
        self._door = door
        self._namespace = namespace

    def read(self, request: Request, who: Who) -> Evidence:
        if request.plan:
            plan = self._plan(request.plan)
            ref = plan.spec.target_ref
            target, unreadable = self._target(ref.kind, ref.name)
            live = self._newest_live(ref.kind, ref.name, _uid(plan, target))
        else:
            target, unreadable = self._target(request.kind, request.name)
            plan = live = self._live(request, target, unreadable)
        job = self._job(plan)
        return Evidence(
            plan=plan, target=target, unreadable=unreadable, live=live, who=who, job=job
        )

    def _plan(self, name: str) -> TerraformPlan:
        document = find(self._door, PLANS, self._namespace, name)
        if document is None:
            raise Refused(
                Rule.NOT_FOUND,
                f"there is no TerraformPlan {name} in namespace {self._namespace}",
                do=self._other(name),
            )
        try:
            return _decoded(document)
        except msgspec.ValidationError as problem:
            raise malformed(name, str(problem)) from None

    def _other(self, name: str) -> str:
        listed = self._listed()
        if close := nearest(name, [one.metadata.name for one in listed]):
            return f"did you mean {close}?"
        for one in listed:
            owner = one.metadata.controller
            if owner is not None and owner.name == name:
                shown = PlanTarget(kind=owner.kind, name=name).shown
                return f"to approve the plan of an object, name it: --target {shown}"
        if listed:
            return f"list the plans: captfctl get terraformplans -n {self._namespace}"
        return "the namespace has no plans at all: name another one with -n"

    def _target(
        self, kind: str, name: str
    ) -> tuple[TerraformCluster | TerraformMachinePool | None, str]:
        """The object, and why it could not be read."""
        try:
            if kind == CLUSTER.name:
                return find(self._door, TERRAFORM_CLUSTERS, self._namespace, name), ""
            return find(self._door, TERRAFORM_MACHINE_POOLS, self._namespace, name), ""
        except Forbidden as refused:
            return None, str(refused)

    def _live(
        self,
        request: Request,
        target: TerraformCluster | TerraformMachinePool | None,
        unreadable: str,
    ) -> TerraformPlan:
        shown = f"{request.kind} {self._namespace}/{request.name}"
        if target is None and not unreadable:
            raise Refused(
                Rule.NOT_FOUND,
                f"there is no {shown}",
                do=f"list the plans that there are: captfctl get terraformplans -n "
                f"{self._namespace}",
            )
        uid = target.metadata.uid if target else ""
        live = self._newest_live(request.kind, request.name, uid)
        if live is None:
            plans = list(self._plans(request.kind, request.name, uid))
            ended = f"{len(plans)} have ended, the newest as {plans[0].phase}" if plans else ""
            raise Refused(
                Rule.NOT_FOUND,
                f"{shown} has no plan that waits or is approved",
                why=ended or "it has no plans at all",
                do="captfctl get shows whether a plan is being made",
            )
        return live

    def _newest_live(self, kind: str, name: str, uid: str) -> TerraformPlan | None:
        # Without a UID, plans that have ended tell which object of the name is the newest.
        return live_plan(self._plans(kind, name, uid, labels=NOT_ENDED if uid else ""))

    def _plans(self, kind: str, name: str, uid: str, labels: str = "") -> Iterator[TerraformPlan]:
        """Newest first. `uid` empty: whichever object of that name has the newest one. One that is
        malformed does not stand in the way.

        A namespace may have thousands of plans, with a long list of resources in each: who owns
        them is read of all, and the plans themselves only as far as they are asked for.
        """
        listed = [one for one in self._listed(labels) if _owned(one, kind, name, uid)]
        for one in sorted(listed, key=age_and_name, reverse=True):
            owner = one.metadata.controller
            uid = uid or (owner.uid if owner else "")
            if owner is None or owner.uid != uid:
                continue
            document = find(self._door, PLANS, self._namespace, one.metadata.name)
            try:
                plan = _decoded(document) if document is not None else None
            except msgspec.ValidationError:
                continue
            if plan is not None and plan.is_for(kind, name, uid) and plan.reason_fits:
                yield plan

    def _listed(self, labels: str = "") -> list[PartialObject]:
        plans = TERRAFORM_PLANS.metadata_only()
        return self._door.list(plans, self._namespace, labels=labels).items

    def _job(self, plan: TerraformPlan) -> str:
        """The Job that made the plan, by the plan's own name; it may be gone, or not be shown."""
        ref, wanted = plan.spec.target_ref, plan.metadata.name
        labels = f"{keys.OWNER_KIND}={ref.kind},{keys.OWNER_NAME}={names.label_value(ref.name)}"
        try:
            jobs = self._door.list(JOBS.metadata_only(), self._namespace, labels=labels).items
        except ApiError:
            return ""
        made = (job.metadata.name for job in jobs)
        hash_ = plan.spec.plan_hash
        return next((job for job in made if names.plan(ref.name, job, hash_) == wanted), "")


def _owned(plan: PartialObject, kind: str, name: str, uid: str) -> bool:
    """Whether it may be a plan of the object; `uid` empty: of any one of that name."""
    owner = plan.metadata.controller
    if owner is None:
        return False
    return owner.uid == uid if uid else (owner.kind, owner.name) == (kind, name)


def _decoded(document: Document) -> TerraformPlan:
    return TERRAFORM_PLANS.decode(msgspec.json.encode(document))


def _uid(plan: TerraformPlan, target: TerraformCluster | TerraformMachinePool | None) -> str:
    if target is not None:
        return target.metadata.uid
    controller = plan.metadata.controller
    return controller.uid if controller else ""

"""One approval from the first read to the write (plans.md: Approving)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from captfctl.approvals import checks
from captfctl.approvals.evidence import Evidence, Request, Who, read
from captfctl.approvals.refused import Refused, Rule
from captfctl.cluster.door import Door, patch_as_read
from captfctl.cluster.errors import ApiError, Conflict, Forbidden, Unavailable
from captfctl.model.resources import TERRAFORM_PLANS


class Result(StrEnum):
    """What became of a request that was not refused."""

    APPROVED = "approved"
    ALREADY_APPROVED = "already-approved"
    DRY_RUN = "dry-run"


class Talk(Protocol):
    """What a person sees and answers."""

    def show(self, found: Evidence) -> None:
        """Show the plan, before it is confirmed and before anything is written."""
        ...

    def confirm(self, found: Evidence, *, by_name: bool) -> bool | None:
        """Whether it shall be approved; `by_name`: the plan's name has to be typed for it. None:
        there is nobody to ask."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """`patch` is what was, or would be, written; empty when there was nothing to write."""

    result: Result
    found: Evidence
    patch: dict[str, Any]


def approve(door: Door, request: Request, who: Who, talk: Talk) -> Outcome:
    """Raises `Refused`; nothing was written then."""
    found = read(door, request, who)
    checks.check(found)
    talk.show(found)
    if found.plan.spec.approved:
        return Outcome(Result.ALREADY_APPROVED, found, {})
    checks.check_before_approval(found, request)
    patch = {"spec": {"approved": True, "approvedBy": who.name}}
    if request.dry_run:
        return Outcome(Result.DRY_RUN, found, patch)
    _confirm(found, request, talk)
    try:
        _write(door, found, patch)
    except Conflict:
        return _once_more(door, request, found, patch)
    return Outcome(Result.APPROVED, found, patch)


def _confirm(found: Evidence, request: Request, talk: Talk) -> None:
    by_name = found.plan.spec.summary.destructive and not request.allow_destructive
    if not by_name and request.yes:
        return
    answer = None if request.yes else talk.confirm(found, by_name=by_name)
    if answer:
        return
    name = found.plan.metadata.name
    rule = Rule.DESTRUCTIVE if by_name else Rule.UNCONFIRMED
    if answer is False:
        raise Refused(rule, f"TerraformPlan {name} is not approved: it was not confirmed")
    if by_name:
        raise Refused(
            rule,
            f"TerraformPlan {name} deletes or replaces resources",
            do="read the list; --allow-destructive approves that, or the plan's name typed at a "
            "terminal",
        )
    raise Refused(
        rule,
        "there is no terminal to confirm it at",
        do="--yes approves without asking",
    )


def _write(door: Door, found: Evidence, patch: dict[str, Any]) -> None:
    """Raises `Conflict` when the plan is another version by now."""
    meta = found.plan.metadata
    again = "run the same command again: it tells whether the plan is approved"
    try:
        patch_as_read(door, TERRAFORM_PLANS, meta, patch, again=again)
    except (Conflict, Unavailable):
        raise
    except ApiError as refused:
        raise Refused(
            Rule.NOT_WRITTEN,
            f"the server refuses the approval of TerraformPlan {meta.name}",
            why=str(refused),
            do="the ClusterRole captf-plan-approver-role allows it"
            if type(refused) is Forbidden
            else refused.do,
        ) from None


def _once_more(door: Door, request: Request, before: Evidence, patch: dict[str, Any]) -> Outcome:
    """The plan changed under our hands: everything is checked again, and confirmed it is."""
    name = before.plan.metadata.name
    found = read(door, Request(namespace=request.namespace, plan=name), before.who)
    checks.check(found)
    if found.plan.spec.approved:
        return Outcome(Result.ALREADY_APPROVED, found, {})
    checks.check_before_approval(found, request)
    same = found.plan.metadata.uid == before.plan.metadata.uid
    try:
        if same and found.plan.spec == before.plan.spec:
            _write(door, found, patch)
            return Outcome(Result.APPROVED, found, patch)
    except Conflict:
        pass
    raise Refused(
        Rule.NOT_WRITTEN,
        f"TerraformPlan {name} was changed by somebody else at the same time",
        do="read it again, then try again",
    )

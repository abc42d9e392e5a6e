"""The end of every branch: what is summed up from everything before
(reconcile.md: The end of a pass)."""

from datetime import timedelta

from captfctl.decide import Nanoseconds, constants
from captfctl.model import keys
from captfctl.model.conditions import TRUE, ConditionValue, Type, cut
from captfctl.model.meta import whole_seconds
from captfctl.model.ops import Op
from captfctl.model.reasons import (
    ApplyJobSucceeded,
    InputsApplied,
    JobFailure,
    Reconciling,
    Standing,
)
from captfctl.model.status import Answer
from captfctl.reconcile import plans, provisioning
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Ended, Known
from captfctl.terraform.books.apply_condition import (
    Saying,
    carried_out,
    deciding_run,
    names_job,
    of_seconds,
)
from captfctl.terraform.books.results import FinishedRun

NO_REQUEUE = timedelta(0)
_NOTHING_CONCLUDED = frozenset({constants.LAG_REQUEUE, constants.STUCK_JOB_REQUEUE})
_ROUND_UP = timedelta(microseconds=999_999)
_REQUEST_MAX = 64


def finish(
    p: Pass,
    known: Known,
    requeue: timedelta = NO_REQUEUE,
    apply_condition: ConditionValue | None = None,
    *,
    idle: Nanoseconds | None = None,
) -> Ended:
    """Sum up and end the pass. `apply_condition` is what a step knows better than bookkeeping."""
    sum_up(p, known, apply_condition)
    if not p.deleting and not p.paused:
        _inputs_applied(p, known)
    if requeue not in _NOTHING_CONCLUDED:
        answer_request(p, requeue)
    return Ended(known, requeue, idle)


def answer_request(p: Pass, requeue: timedelta) -> None:
    """Answer a request for a pass: one has concluded, and this is how long what is due has to wait
    (reconcile.md: Asking for a pass)."""
    asked = cut(p.obj.metadata.annotations.get(keys.RECONCILE_REQUESTED, ""), _REQUEST_MAX)
    answered = p.obj.status.answer
    if not asked or (answered is not None and answered.request == asked):
        return
    waits = requeue > NO_REQUEUE and p.obj.status.active_job is None
    until = whole_seconds(p.now + requeue + _ROUND_UP) if waits else None
    p.obj.status.answer = Answer(request=asked, until=until)


def sum_up(p: Pass, known: Known, apply_condition: ConditionValue | None = None) -> None:
    """What a pass knows after bookkeeping, however far it came."""
    p.set(Type.APPLY_JOB_SUCCEEDED, apply_condition or _apply_condition(p, known))
    shown = p.obj.status.active_job  # stays where the cache may be behind
    if not p.provisioned and (shown is None or shown.operation is not Op.APPLY):
        provisioning.none_running(p, known)
    p.rules.show_plan(known.plans.live.metadata.name if known.plans.live else "")
    p.conditions.summarize_ready(p.provisioned, with_apply=p.rules.ready_with_apply)


def last_apply_failed(known: Known) -> bool:
    """Whether an apply is due because the last one did not get through
    (reconcile.md: When the last apply counts as failed)."""
    newest = known.books.newest(Op.APPLY)
    if known.records.marks.interrupted_apply or known.records.marks.partial_exports:
        return True
    if newest is None or newest.ok:
        return False
    annotations = newest.job.metadata.annotations
    if newest.blocked or newest.plan_changed:
        return annotations.get(keys.AFTER_FAILED_APPLY) == keys.TRUE
    return annotations.get(keys.DRIFT_REMEDIATION) != keys.TRUE


def first_apply_unfinished(p: Pass, known: Known) -> bool:
    """Whether what exists is what applies left that began from nothing and did not get through.

    Their retries clean up after themselves: nothing that ever worked can be replaced by them.
    """
    hashed = known.state is not None and bool(known.state.inputs_hash)
    return known.records.first_apply_unfinished and not (hashed or p.provisioned)


def _apply_condition(p: Pass, known: Known) -> ConditionValue:
    kept = p.conditions[Type.APPLY_JOB_SUCCEEDED]
    if (
        p.paused
        and kept is not None
        and kept.reason == JobFailure.IMAGE_PULL_FAILED
        and not known.books.unread
    ):
        # Its Job was deleted so that it does not hold a move.
        return ConditionValue.of(kept)
    wait = plans.wait(p, known)
    if wait is not None:
        return wait
    interrupted = known.records.marks.interrupted_apply
    newest = known.books.newest(Op.APPLY)
    if interrupted and not _answered(newest, interrupted):
        reason, how = _how_it_ended(p, newest, interrupted)
        due = "an apply of the current inputs is due"
        return reason.says(f"Job {interrupted}: {how}; {due}{_stops(p, known)}")
    if _withdrawn(p, known):
        saying = Saying(p.owner, deleting=p.deleting, manual=p.config.manual_apply)
        return carried_out(known.books.finished, kept, saying)
    return known.books.apply_condition


def _stops(p: Pass, known: Known) -> str:
    """What an apply that is due will stop at."""
    if first_apply_unfinished(p, known) or not (p.rules.kind.leads or known.inputs.guarded):
        return ""
    if p.config.manual_apply:
        return " and waits for an approval"
    return " and will stop at a plan that deletes or replaces anything"


def _withdrawn(p: Pass, known: Known) -> bool:
    """Whether the newest run stopped before what nobody wants any more. Where a pass decides
    nothing, what was said before tells."""
    run = deciding_run(known.books.finished)
    if run is None or not run.stopped or p.deleting or plans.awaits_approval(known):
        return False
    if known.decision is not None:
        return known.decision.applies_nothing
    before = p.condition_before(Type.APPLY_JOB_SUCCEEDED)
    if before is None or not run.bookkept:
        return False
    return before.status == TRUE and not names_job(before.message, run.name)


def _how_it_ended(
    p: Pass, newest: FinishedRun | None, interrupted: str
) -> tuple[ApplyJobSucceeded, str]:
    """Of an apply that is to be answered by another one."""
    told = p.obj.status.last_run
    if newest is not None and newest.name == interrupted and newest.deadline:
        text = f"ended by its deadline{of_seconds(newest)} without telling what it applied"
        return ApplyJobSucceeded.JOB_DEADLINE_EXCEEDED, text
    if told is not None and told.job == interrupted and told.error is not None:
        return ApplyJobSucceeded.APPLY_FAILED, "it was deleted while it ran"
    return ApplyJobSucceeded.APPLY_FAILED, "it ended without telling what it applied"


def _answered(newest: FinishedRun | None, interrupted: str) -> bool:
    """Whether an apply started to answer the interrupted one has reported itself."""
    if newest is None:
        return False
    return newest.job.metadata.annotations.get(keys.AFTER_INTERRUPTED_APPLY) == interrupted


def _inputs_applied(p: Pass, known: Known) -> None:
    found = _inputs_value(p, known)
    if found is None:
        return
    reason, message = found
    p.conditions.set_reason(reason, message)
    if reason.bad and reason.standing is not Standing.FAILING:
        p.conditions.set_reason(Reconciling.INPUTS_NOT_APPLIED, f"{reason}: {message}")
    else:
        p.conditions.set_reason(Reconciling.RECONCILED)


def _inputs_value(p: Pass, known: Known) -> tuple[InputsApplied, str] | None:
    """The first that holds; None leaves the condition as it is."""
    if known.running_apply:
        return InputsApplied.APPLY_RUNNING, f"Job {known.running_apply}"
    if known.state is None:
        old = p.conditions[Type.INPUTS_APPLIED]
        if old is None or old.reason != InputsApplied.APPLY_RUNNING:
            return None
        text = "the apply is over and the state was not read yet"
        return InputsApplied.INPUTS_UNAVAILABLE, text
    if known.inputs.held:
        return InputsApplied.AWAITING_APPROVAL, known.inputs.held
    if plans.awaits_approval(known) and known.plans.live is not None:
        name = known.plans.live.metadata.name
        return InputsApplied.AWAITING_APPROVAL, f"TerraformPlan {name} waits for an approval"
    hashed, current = known.state.inputs_hash, known.inputs.hash
    applied = bool(hashed) and (hashed == current or not p.rules.mutable)
    if known.inputs.values is None and not applied:
        return InputsApplied.INPUTS_UNAVAILABLE, _unavailable(known)
    if last_apply_failed(known):
        return InputsApplied.INPUTS_APPLY_FAILED, "the last apply did not succeed"
    if not applied:
        return InputsApplied.APPLY_PENDING, "the current inputs are not applied yet"
    return InputsApplied.INPUTS_APPLIED, ""


def _unavailable(known: Known) -> str:
    gate = known.inputs.gate
    if gate is not None:
        return f"the inputs cannot be built: {gate.reason}"
    return "the inputs were not built because the state cannot be used"

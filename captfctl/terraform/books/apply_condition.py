"""`ApplyJobSucceeded` as finished Jobs tell it (reconcile.md: The end of a pass)."""

import string
from collections.abc import Sequence
from dataclasses import dataclass

from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, cut
from captfctl.model.core import Pod
from captfctl.model.meta import Condition
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.reasons import ApplyJobSucceeded, JobFailure, WaitReason
from captfctl.runs.stuck import pull_problem
from captfctl.terraform.books.result_document import SUMMARY_MAX, source_state
from captfctl.terraform.books.results import FinishedRun
from captfctl.terraform.plans.drafts import made_by
from captfctl.terraform.plans.wording import how_to_approve
from runner import wire

_REASON_MAX = 64
_RESOURCES_SHOWN = 5
_IN_NAMES = frozenset(f"-{string.ascii_lowercase}{string.digits}")


def deciding_run(runs: Sequence[FinishedRun]) -> FinishedRun | None:
    """The newest apply or destroy, or a plan that failed after it. `runs` are newest first."""
    return next(
        (r for r in runs if r.op in (Op.APPLY, Op.DESTROY) or (r.op is Op.PLAN and r.failed)),
        None,
    )


@dataclass(frozen=True, slots=True)
class Saying:
    """What the words about a run depend on, besides the run. `manual`: every change of the object
    has to be approved. `ended`: the plans that cannot be approved any more."""

    owner: Owner
    deleting: bool = False
    manual: bool = False
    ended: frozenset[str] = frozenset()


def apply_condition(
    runs: Sequence[FinishedRun], previous: Condition | None, saying: Saying
) -> ConditionValue:
    """A Job that was read before and is named already keeps what was said about it.

    A wait is never kept: it is set again when it still lasts.
    """
    kept = _kept(previous, runs)
    run = deciding_run(runs)
    if run is None:
        return kept or ApplyJobSucceeded.NO_APPLY_YET.says("no apply has finished yet")
    if kept is not None and run.bookkept and names_job(kept.message, run.name):
        return kept
    pull = pull_failure(run, previous)
    return pull or _outcome(run, saying)


def carried_out(
    runs: Sequence[FinishedRun], previous: Condition | None, saying: Saying
) -> ConditionValue:
    """The same, passing over runs that stopped before they applied anything: what they stopped
    before is not wanted any more."""
    left = [run for run in runs if not run.stopped]
    if deciding_run(left) is None:
        return ApplyJobSucceeded.APPLY_SUCCEEDED.says(
            "the inputs of the state are the current ones"
        )
    return apply_condition(left, previous, saying)


def _kept(previous: Condition | None, runs: Sequence[FinishedRun]) -> ConditionValue | None:
    """An image that cannot be pulled is said again while that lasts; of a Job that has ended it is
    the outcome."""
    if previous is None or previous.reason in list(WaitReason):
        return None
    if previous.reason == JobFailure.IMAGE_PULL_FAILED and not any(
        names_job(previous.message, run.name) for run in runs
    ):
        return None
    return ConditionValue.of(previous)


def pull_failure(run: FinishedRun, before: Condition | None) -> ConditionValue | None:
    """That a Job ended because its image could not be pulled; None when that is not known.

    At the deadline the pod may be gone that showed it: then what was said `before` counts.
    """
    if run.ok or run.result is not None:
        return None
    if pull := pull_problem(run.pod):
        return JobFailure.IMAGE_PULL_FAILED.says(f"Job {run.name}: {pull}")
    said = before is not None and before.reason == JobFailure.IMAGE_PULL_FAILED
    if before is None or not said or not run.deadline or not names_job(before.message, run.name):
        return None
    return JobFailure.IMAGE_PULL_FAILED.says(before.message)


def names_job(message: str, job: str) -> bool:
    """Whether a condition's message is about that Job."""
    start = f"Job {job}"
    after = message[len(start) : len(start) + 1]
    return message.startswith(start) and after not in _IN_NAMES


def _outcome(run: FinishedRun, saying: Saying) -> ConditionValue:
    if run.blocked:
        return ApplyJobSucceeded.DESTRUCTIVE_PLAN_BLOCKED.says(_blocked(run, saying))
    if run.plan_changed:
        return ApplyJobSucceeded.PLAN_CHANGED.says(_changed(run, saying))
    if run.ok:
        destroyed = run.op is Op.DESTROY
        good = (
            ApplyJobSucceeded.DESTROY_SUCCEEDED if destroyed else ApplyJobSucceeded.APPLY_SUCCEEDED
        )
        return good.says(f"Job {run.name}")
    return failure(run)


def failure(run: FinishedRun) -> ConditionValue:
    """A failed apply, destroy or plan."""
    if run.deadline:
        text = f"Job {run.name}: ended by its deadline{of_seconds(run)}"
        text += "; it is tried again at once" if run.interrupted else ""
        return ApplyJobSucceeded.JOB_DEADLINE_EXCEEDED.says(text)
    text = f"Job {run.name}{failure_detail(run)}"
    if run.image_invalid:
        return ApplyJobSucceeded.IMAGE_INVALID.says(text)
    if run.op is Op.DESTROY:
        return ApplyJobSucceeded.DESTROY_FAILED.says(text)
    return ApplyJobSucceeded.APPLY_FAILED.says(text)


def of_seconds(run: FinishedRun) -> str:
    """The length of its deadline; the Job of a cache has its spec."""
    seconds = run.job.spec.active_deadline_seconds
    return f" of {seconds} s" if seconds is not None else ""


def failure_detail(run: FinishedRun) -> str:
    """What there is to say of a run that did not do what it was for, after its name."""
    text = detail(run)
    return f": {text}" if text else ""


def detail(run: FinishedRun) -> str:
    """`step <step> failed: <why>`, or what a stopped run stopped before; empty for a good run. What
    the runner says is bounded here. It is kept with the Job that was read."""
    if run.bookkept or run.ok:
        return run.detail
    if run.plan_unreadable:
        return "it reported no plan that can be read"
    if run.stopped:
        return _plan_of(run)
    memory = out_of_memory(run)
    if run.result is None or run.result.error is None:
        return memory or f"it ended without a result{_told_by_the_node(run.pod)}"
    if run.interrupted:
        return "stopped from outside"
    error = run.result.error
    if run.image_invalid:
        return cut(error.tail.strip(), SUMMARY_MAX)
    text = f"step {cut(error.step, 64)} failed" if error.step else "failed"
    why = "; ".join(part for part in (memory, cause(error)) if part)
    return f"{text}: {why}" if why else text


def _plan_of(run: FinishedRun) -> str:
    """What the plan of a stopped run would do, and to which resources."""
    plan = run.result.plan if run.result else None
    if plan is None:
        return ""
    shown = ", ".join(plan.resources[:_RESOURCES_SHOWN])
    more = ", …" if plan.truncated or len(plan.resources) > _RESOURCES_SHOWN else ""
    return cut(f"{plan.counts} ({shown}{more})" if shown else plan.counts, SUMMARY_MAX)


def out_of_memory(run: FinishedRun) -> str:
    """That something of the run was ended for its memory; empty when nothing was."""
    state = source_state(run.pod)
    ended = state.terminated if state else None
    if run.pod is None or ended is None or ended.reason != "OOMKilled":
        return ""
    limits = [c.resources.limits for c in run.pod.spec.containers if c.resources]
    limit = next((limits_of["memory"] for limits_of in limits if "memory" in limits_of), "")
    of = f" of {limit}" if limit else ""
    return (
        f"out of memory: the run was ended at its limit{of}, or a part of it was; raise "
        "spec.jobs.resources.limits.memory"
    )


def _told_by_the_node(pod: Pod | None) -> str:
    """Why the node ended the pod, or its main container; empty when it gives no reason."""
    if pod is None:
        return ""
    if pod.status.reason:
        told = f"{pod.status.reason}: {pod.status.message}".removesuffix(": ")
        return f": {cut(told, SUMMARY_MAX)}"
    state = source_state(pod)
    ended = state.terminated if state else None
    if ended is None or ended.reason in ("", "Completed", "Error"):
        return ""
    return f": {cut(ended.reason, _REASON_MAX)}, exit code {ended.exit_code}"


def cause(error: wire.Failure) -> str:
    """The most telling line of a failure: the first error of the runtime, with file and line."""
    lines = [line.strip().removeprefix("Error: ") for line in error.tail.splitlines()]
    known = [line for line in (*lines, *error.resources) if line]
    return cut(known[0], SUMMARY_MAX) if known else ""


NOTHING_TO_APPROVE = (
    "nothing was applied, and it reported no plan that could be approved; it is tried again within "
    "ten minutes"
)


def stopped_before(run: FinishedRun) -> str:
    """What a blocked run did not do."""
    return f"stopped before a plan that deletes or replaces{failure_detail(run)}"


def _blocked(run: FinishedRun, saying: Saying) -> str:
    text = f"Job {run.name}: {stopped_before(run)}; "
    if saying.deleting:
        return text + _NO_APPROVAL
    plan = made_by(run, saying.owner)
    if not plan or plan in saying.ended:
        return text + NOTHING_TO_APPROVE
    return f"{text}nothing was applied; {how_to_approve(plan, saying.owner.namespace)}"


def _changed(run: FinishedRun, saying: Saying) -> str:
    text = f"Job {run.name}: {found_changed(run)}"
    if saying.deleting:
        return f"{text}; {_NO_APPROVAL}"
    return text + failure_detail(run) + ("" if saying.manual else "; it is planned again")


def found_changed(run: FinishedRun) -> str:
    """What stopped the apply of an approved plan."""
    approved = run.job.metadata.annotations.get(keys.PLAN, "")
    of = f" of TerraformPlan {approved}" if approved else ""
    return f"what it would do is not what was approved{of}, nothing was applied"


_NO_APPROVAL = "the object is being deleted, so no approval is needed any more"

"""A Job that was deleted while it ran (runs.md: A Job that is deleted while it runs)."""

from dataclasses import replace

from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.status import ActiveJob
from captfctl.reconcile import plans
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Known
from captfctl.runs.jobs import all_pods_over, newest_labelled_pod, pod_over
from captfctl.terraform.books.last_run import last_run
from captfctl.terraform.books.results import FinishedRun, read_vanished
from captfctl.terraform.state.records import (
    Record,
    mark_may_have_applied,
    read_records,
    record_interrupted,
)
from captfctl.terraform.state.verdict import changed_nothing


def read_vanished_job(p: Pass, known: Known, shown: ActiveJob) -> Known | None:
    """Its pod is kept, and tells how it ended; None: it has not ended yet."""
    pod = newest_labelled_pod(p.env.door, p.owner, shown.name)
    if pod is not None and not pod_over(pod):
        text = f"Job {shown.name} was deleted while it ran; its pod {pod.metadata.name} ends first"
        p.record(EventReason.JOB_INTERRUPTED.says(text, job=shown.name, once=True))
        return None
    if shown.operation is None:
        return known
    run = read_vanished(shown.name, shown.operation, pod, p.now)
    if run.op is Op.APPLY and not run.succeeded and run.may_have_applied:
        known = _record(p, known, run)
    if run.may_have_restored:
        known = plans.end_of_earlier_state(p, known, run.name)
    if pod is not None:
        p.env.leases.release(p.owner, shown.name)  # nothing of it runs any more
    if run.result is not None:
        p.obj.status.last_run = last_run(run, None)
    if run.interrupted:
        text = f"{run.op} Job {run.name} was deleted while it ran and is tried again at once"
        p.later.append(EventReason.JOB_INTERRUPTED.says(text, job=run.name))
    return known


def proven_harmless(p: Pass, attempt: Record) -> bool:
    """Whether the recorded apply, which ended without telling, can have changed nothing."""
    over = all_pods_over(p.env.door, p.owner.namespace, attempt.job)
    return over and changed_nothing(p.env.door, p.owner, attempt)


def _record(p: Pass, known: Known, run: FinishedRun) -> Known:
    """An apply that nobody saw finish may have changed anything, unless there is proof
    (state.md: Applies that ended without telling)."""
    p.confirm()  # it may have been taken off `status.activeJob` on purpose, before it was deleted
    attempt = read_records(p.env.door, p.owner).attempt
    # Without its record, nothing that its pod waits for was there yet.
    recorded = attempt if attempt is not None and attempt.job == run.name else None
    if recorded is None or (run.result is None and proven_harmless(p, recorded)):
        return known
    record_interrupted(p.env.door, p.owner, run.name)
    mark_may_have_applied(p.env.door, p.owner, run.name)
    return replace(known, records=read_records(p.env.door, p.owner))

"""A Job that was deleted while it ran (runs.md: A Job that is deleted while it runs)."""

from dataclasses import replace

from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.status import ActiveJob
from captfctl.reconcile.context import Pass
from captfctl.reconcile.known import Known
from captfctl.runs.jobs import newest_labelled_pod, pod_over
from captfctl.terraform.books.last_run import last_run
from captfctl.terraform.books.results import read_vanished
from captfctl.terraform.state.records import mark_may_have_applied, read_records, record_interrupted


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
        known = _record(p, known, shown.name)
    if pod is not None:
        p.env.leases.release(p.owner, shown.name)  # nothing of it runs any more
    if run.result is not None:
        p.obj.status.last_run = last_run(run, None)
    if run.interrupted:
        text = f"{run.op} Job {run.name} was deleted while it ran and is tried again at once"
        p.later.append(EventReason.JOB_INTERRUPTED.says(text, job=run.name))
    return known


def _record(p: Pass, known: Known, job: str) -> Known:
    """An apply that nobody saw finish may have changed anything
    (state.md: Applies that ended without telling)."""
    if known.records.attempt is None:
        return known
    p.confirm()  # it may have been taken off `status.activeJob` on purpose, before it was deleted
    record_interrupted(p.env.door, p.owner, job)
    mark_may_have_applied(p.env.door, p.owner, job)
    return replace(known, records=read_records(p.env.door, p.owner))

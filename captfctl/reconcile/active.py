"""The Job that runs now, or is no longer there (reconcile.md: The run branch)."""

from dataclasses import dataclass, replace
from datetime import timedelta

from captfctl.cluster.door import find
from captfctl.decide import constants
from captfctl.model import keys
from captfctl.model.conditions import ConditionValue, Type
from captfctl.model.core import Job
from captfctl.model.events import EventReason
from captfctl.model.ops import Op
from captfctl.model.reasons import JobFailure
from captfctl.model.resources import JOBS
from captfctl.model.status import ActiveJob
from captfctl.reconcile import provisioning, restore
from captfctl.reconcile.context import Pass
from captfctl.reconcile.deletion import retaining
from captfctl.reconcile.finish import finish
from captfctl.reconcile.images import DESTROY_IMAGE, fallback_image
from captfctl.reconcile.known import Ended, Known
from captfctl.reconcile.vanished import read_vanished_job
from captfctl.runs.lag import Lag, check_lag
from captfctl.runs.stuck import Starting, Stuck, StuckKind, main_image, remove_unstarted
from captfctl.terraform.books.results import op_of
from captfctl.terraform.job.pulling import REPLACEABLE, image_instead
from captfctl.terraform.job.work import has_run_secret

CONDITION_OF = {
    Op.APPLY: Type.APPLY_JOB_SUCCEEDED,
    Op.PLAN: Type.APPLY_JOB_SUCCEEDED,
    Op.DESTROY: Type.APPLY_JOB_SUCCEEDED,
    Op.REFRESH: Type.DRIFT_JOB_SUCCEEDED,
    Op.DRIFT: Type.DRIFT_JOB_SUCCEEDED,
    Op.RESTORE: Type.RESTORE_JOB_SUCCEEDED,
}


@dataclass(frozen=True, slots=True)
class Unstartable:
    """What was found of a Job that does not start. `removed`: it is gone."""

    removed: bool
    message: str = ""


def watch(p: Pass, known: Known, job: Job) -> Ended:
    """Wait for it, unless it can never start. Nothing is decided meanwhile."""
    starting = Starting(p.env.door, p.now, job)
    stuck = remove_if_stuck(p, known, job, starting)
    if stuck is not None and stuck.removed:
        return finish(p, known, constants.STUCK_JOB_REQUEUE)
    shown = show(p, known, job, starting)
    if shown is None:
        return finish(p, known, constants.LAG_REQUEUE)
    if job.status.ready or job.spec.suspend:
        return finish(p, shown, constants.ACTIVE_JOB_REQUEUE)
    if starting.age < constants.UNSTARTED_JOB_REQUEUE:
        return finish(p, shown, constants.UNSTARTED_JOB_REQUEUE)
    return finish(p, shown, _look_again(starting), _say_what_it_lacks(p, job, starting))


def _say_what_it_lacks(p: Pass, job: Job, starting: Starting) -> ConditionValue | None:
    """What its node says: an event, and of an image the condition of the operation. Returned if
    that is the one that the end of the pass sets."""
    if why := starting.reported_problem():
        text = f"Job {job.metadata.name} cannot start: {why}"
        p.record(EventReason.JOB_CANNOT_START.says(text, job=job.metadata.name, once=True))
    op, problem = op_of(job), starting.unpullable()
    if op is None or not problem:
        return None
    value = JobFailure.IMAGE_PULL_FAILED.says(problem)
    if CONDITION_OF[op] is Type.APPLY_JOB_SUCCEEDED:
        return value
    p.set(CONDITION_OF[op], value)
    return None


def _look_again(starting: Starting) -> timedelta:
    """Its status tells when it runs and ends. What its pod waits for has to be asked: often at
    first, where somebody waits for the answer, then less often."""
    if starting.age >= constants.OFTEN_LOOKED_AT:
        return constants.ACTIVE_JOB_REQUEUE
    return min(max(starting.age, constants.UNSTARTED_JOB_REQUEUE), constants.UNSTARTED_JOB_LATER)


def remove_if_stuck(p: Pass, known: Known, job: Job, starting: Starting) -> Unstartable | None:
    """Delete the Job when it can never start, or has not begun and is not wanted any more; None
    when nothing keeps it from starting."""
    door = p.env.door
    if not job.status.ready and (why := _outdated(p, job)) and starting.cannot_begin():
        text = f"Job {job.metadata.name} had not begun and is deleted: {why}"
        removed = _remove(p, job, EventReason.UNSTARTED_JOB_REPLACED, text)
        if removed is not None:
            return removed
    stuck = starting.stuck(provided=lambda: has_run_secret(door, job))
    if stuck is None:
        return None
    if stuck.kind is StuckKind.IMAGE_PULL:
        return _unpullable(p, known, job, stuck)
    return _remove(p, job, EventReason.STUCK_JOB_DELETED, stuck.message)


def _outdated(p: Pass, job: Job) -> str:
    """Why a Job that has not begun should not any more; empty when it should."""
    op, meta = op_of(job), p.obj.metadata
    if op is Op.RESTORE and not retaining(p):
        return restore.outdated(p, job)
    if p.deleting:
        wanted = meta.annotations.get(DESTROY_IMAGE, "")
        if op is not Op.DESTROY:
            return "the object is being deleted"
        if wanted and wanted != main_image(job):
            return f"the destroy is to run image {wanted}"
    made_for = job.metadata.annotations.get(keys.GENERATION, "")
    if made_for and made_for != str(meta.generation):
        return "the object was changed"
    wanted = p.obj.spec.source.image
    if not made_for and op in (Op.APPLY, Op.PLAN) and wanted != main_image(job):
        return f"the object names image {wanted} now"
    return ""


def _unpullable(p: Pass, known: Known, job: Job, stuck: Stuck) -> Unstartable | None:
    """Another image where the operation may run one: an apply or plan must run the image that the
    spec names. A paused object's Job goes, as it would hold a move."""
    op = op_of(job)
    if op is None:
        return None
    if op in REPLACEABLE and stuck.absent:
        image = fallback_image(p.obj, known.records, op)
        instead = image_instead(p.env.door, p.owner, known.records, job, image, p.now)
        if instead:
            text = (
                f"image {main_image(job)} cannot be pulled ({stuck.problem}): Job "
                f"{job.metadata.name} is deleted, the next one runs {instead}"
            )
            return _remove(p, job, EventReason.IMAGE_PULL_FALLBACK, text)
    removed = p.paused and _removed(p, job)
    p.set(CONDITION_OF[op], JobFailure.IMAGE_PULL_FAILED.says(stuck.message))
    return Unstartable(removed, stuck.message)


def _remove(p: Pass, job: Job, reason: EventReason, text: str) -> Unstartable | None:
    if not _removed(p, job):
        return None
    p.record(reason.says(text, job=job.metadata.name))
    return Unstartable(removed=True, message=text)


def _removed(p: Pass, job: Job) -> bool:
    if not remove_unstarted(p.env.door, job, p.unlist_job):
        return False
    p.env.leases.job_removed(p.owner, job.metadata.name)
    return True


def show(p: Pass, known: Known, job: Job, starting: Starting) -> Known | None:
    """Hold a move, and mirror the Job into `status.activeJob`.

    None, and nothing is done: the cache is behind, the Job is gone. Naming one that was deleted
    on purpose would make it an apply that vanished, which nobody dares to repeat.
    """
    meta = job.metadata
    shown = p.obj.status.active_job
    if (shown is None or shown.name != meta.name) and not _exists(p, job):
        return None
    p.obj.metadata.annotations.setdefault(keys.BLOCK_MOVE, keys.TRUE)
    attempt = meta.labels.get(keys.ATTEMPT, "")
    p.obj.status.active_job = ActiveJob(
        name=meta.name,
        operation=op_of(job),
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() else 0,
        start_time=job.status.start_time or meta.creation_timestamp,
    )
    if op_of(job) is not Op.APPLY:
        return known
    if not p.provisioned:
        provisioning.running(p, job, starting)
    return replace(known, running_apply=meta.name)


def _exists(p: Pass, job: Job) -> bool:
    live = find(p.env.door, JOBS, job.metadata.namespace, job.metadata.name)
    return live is not None and live.metadata.uid == job.metadata.uid


def settle(p: Pass, known: Known) -> Known | None:
    """Nothing runs any more: read what vanished, let moves through.

    None: the cache is behind the server, or a pod still runs, and nothing may be concluded yet.
    """
    shown = p.obj.status.active_job
    lag = check_lag(
        p.env.door,
        p.env.leases,
        p.owner,
        listed=[job.metadata.name for job in known.books.jobs],
        active_job=shown.name if shown else "",
        block_move=keys.BLOCK_MOVE in p.obj.metadata.annotations,
        deleting=p.deleting,
    )
    if lag is Lag.LAGGING:
        return None
    if lag is Lag.GONE and shown is not None:
        read = read_vanished_job(p, known, shown)
        if read is None:
            return None
        known = read
    p.obj.metadata.annotations.pop(keys.BLOCK_MOVE, None)
    p.obj.status.active_job = None
    return known

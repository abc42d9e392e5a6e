"""What a Job's status has to say, worked out from its pods. Pure: no reads, no writes, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from captfctl.model.core import Job, JobCondition, Pod, UncountedTerminatedPods
from captfctl.model.meta import whole_seconds
from captfctl.model.resource import Document

_DEFAULT_BACKOFF_LIMIT = 6
_TARGETS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""A Job's outcome is settled first, and final when no pod of it is left running."""

_REACHED = "CompletionsReached"
_SUSPENDED = "Suspended"


TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its outcome is in the Job's status."""


@dataclass(frozen=True)
class Tally:
    """`succeeded` and `failed` are all there ever were. `to_count`: pods among them that still have
    their finalizer; `uncounted`: all that are not in the status' own numbers yet.
    """

    active: int
    ready: int
    terminating: int
    succeeded: int
    failed: int
    to_count: Sequence[Pod]
    uncounted: UncountedTerminatedPods
    last_failure: datetime | None


@dataclass
class Plan:
    """What to do now. `patch` is a merge patch of the status; `look_again` in seconds, 0: when
    something changes. `events` are (warning, reason, note).
    """

    tally: Tally
    patch: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[bool, str, str]] = field(default_factory=list)
    stop_pods: bool = False
    start_pod: bool = False
    look_again: float = 0.0


def unsupported(job: Document) -> str:
    """Why this controller does not run the Job; empty when it does."""
    spec: Document = job.get("spec") or {}
    for name in ("completions", "parallelism"):
        value = spec.get(name)
        if value is not None and value != 1:
            return f"spec.{name} is {value}: the embedded control plane runs Jobs of one pod"
    if spec.get("completionMode", "NonIndexed") != "NonIndexed":
        return "spec.completionMode: the embedded control plane has no indexed Jobs"
    for name in ("podFailurePolicy", "successPolicy", "manualSelector", "backoffLimitPerIndex"):
        if spec.get(name):
            return f"spec.{name}: the embedded control plane does not know it"
    return ""


def is_finished(job: Job) -> bool:
    """Whether the Job is complete or failed."""
    return any(
        c.type in ("Complete", "Failed") and c.status == "True" for c in job.status.conditions
    )


def tally(job: Job, pods: Iterable[Pod]) -> Tally:
    """Count `pods`, and those of the Job's status that are gone meanwhile.

    A pod with the finalizer is not in the status' numbers, one without it is; UIDs written down as
    uncounted bridge a crash between the two.
    """
    noted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded, failed = set(noted.succeeded), set(noted.failed)
    active = ready = terminating = 0
    to_count: list[Pod] = []
    failures: list[Pod] = []
    for pod in pods:
        phase, tracked = pod.status.phase, TRACKING in pod.metadata.finalizers
        ended = phase in ("Succeeded", "Failed")
        # As in Kubernetes: a pod that is being deleted has failed, even while it still runs.
        lost = phase == "Failed" or (pod.deleting and not ended)
        if lost:
            failures.append(pod)
        if tracked and (ended or lost):
            to_count.append(pod)
            (failed if lost else succeeded).add(pod.metadata.uid)
        if not ended and pod.deleting:
            terminating += 1
        elif not ended:
            active += 1
            ready += _is_ready(pod)
    return Tally(
        active=active,
        ready=ready,
        terminating=terminating,
        succeeded=job.status.succeeded + len(succeeded),
        failed=job.status.failed + len(failed),
        to_count=to_count,
        uncounted=UncountedTerminatedPods(succeeded=sorted(succeeded), failed=sorted(failed)),
        last_failure=max(map(_ended_at, failures), default=None),
    )


def plan_status(job: Job, pods: Sequence[Pod], now: datetime) -> Plan:
    """What the Job's status must be, and what has to happen to its pods."""
    count = tally(job, pods)
    plan = Plan(count)
    conditions = {c.type: c for c in job.status.conditions}
    started = job.status.start_time
    suspended = bool(job.spec.suspend)
    if suspended:
        started = None
    elif started is None:
        started = whole_seconds(now)
    _suspension(plan, conditions, suspended, now)
    if not any(target in conditions for target in _TARGETS):
        verdict = _verdict(job, count, started, now)
        if verdict is not None:
            _set(conditions, verdict, now)
    target = next((conditions[name] for name in _TARGETS if name in conditions), None)
    running = count.active + count.terminating
    completed = None
    if target is not None:
        plan.stop_pods = count.active > 0
        if not running:
            _finish(plan, conditions, target, now)
            completed = whole_seconds(now) if target.type == "SuccessCriteriaMet" else None
    elif suspended:
        plan.stop_pods = count.active > 0
    else:
        plan.start_pod = not running
        plan.look_again = _until_deadline(job, started, now)
    plan.patch = _patch(job, count, conditions, started, completed)
    return plan


def _verdict(
    job: Job, count: Tally, started: datetime | None, now: datetime
) -> JobCondition | None:
    """The outcome, when it is settled."""
    if count.succeeded:
        return JobCondition(
            type="SuccessCriteriaMet",
            status="True",
            reason=_REACHED,
            message="Reached expected number of succeeded pods",
        )
    limit = job.spec.backoff_limit
    if count.failed > (_DEFAULT_BACKOFF_LIMIT if limit is None else limit):
        return JobCondition(
            type="FailureTarget",
            status="True",
            reason="BackoffLimitExceeded",
            message="Job has reached the specified backoff limit",
        )
    seconds = job.spec.active_deadline_seconds
    if seconds is not None and started is not None and now - started >= timedelta(seconds=seconds):
        return JobCondition(
            type="FailureTarget",
            status="True",
            reason="DeadlineExceeded",
            message="Job was active longer than specified deadline",
        )
    return None


def _finish(
    plan: Plan, conditions: dict[str, JobCondition], target: JobCondition, now: datetime
) -> None:
    final = JobCondition(
        type=_TARGETS[target.type], status="True", reason=target.reason, message=target.message
    )
    _set(conditions, final, now)
    if final.type == "Complete":
        plan.events.append((False, "Completed", "Job completed"))
    else:
        plan.events.append((True, final.reason, final.message))


def _suspension(
    plan: Plan, conditions: dict[str, JobCondition], suspended: bool, now: datetime
) -> None:
    was = conditions.get(_SUSPENDED)
    if suspended and (was is None or was.status != "True"):
        reason, message, status = "JobSuspended", "Job suspended", "True"
        plan.events.append((False, _SUSPENDED, message))
    elif not suspended and was is not None and was.status == "True":
        reason, message, status = "JobResumed", "Job resumed", "False"
        plan.events.append((False, "Resumed", message))
    else:
        return
    _set(
        conditions,
        JobCondition(type=_SUSPENDED, status=status, reason=reason, message=message),
        now,
    )


def _set(conditions: dict[str, JobCondition], condition: JobCondition, now: datetime) -> None:
    condition.last_transition_time = condition.last_probe_time = whole_seconds(now)
    conditions[condition.type] = condition


def _until_deadline(job: Job, started: datetime | None, now: datetime) -> float:
    seconds = job.spec.active_deadline_seconds
    if seconds is None or started is None:
        return 0.0
    return max(0.001, seconds - (now - started).total_seconds())


def _patch(
    job: Job,
    count: Tally,
    conditions: dict[str, JobCondition],
    started: datetime | None,
    completed: datetime | None,
) -> dict[str, Any]:
    """Only what differs from the status as it is."""
    now_is = msgspec.to_builtins(job.status)
    wanted = {
        "active": count.active or None,
        "ready": count.ready,
        "terminating": count.terminating,
        "succeeded": count.succeeded or None,
        "failed": count.failed or None,
        "uncountedTerminatedPods": None,
        "startTime": msgspec.to_builtins(started),
        "conditions": [msgspec.to_builtins(c) for c in conditions.values()] or None,
    }
    if completed is not None:
        wanted["completionTime"] = msgspec.to_builtins(completed)
    return {name: value for name, value in wanted.items() if now_is.get(name) != value}


def _is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _ended_at(pod: Pod) -> datetime:
    times = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state and status.state.terminated
    ]
    times += [pod.metadata.deletion_timestamp, pod.metadata.creation_timestamp]
    return max(time for time in times if time is not None)

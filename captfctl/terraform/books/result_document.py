"""The runner's result, read out of its pod and cut to what an object's status takes
(runs.md: Reading a finished Job)."""

from typing import NamedTuple

from captfctl.model.conditions import cut
from captfctl.model.core import ContainerState, ContainerStatus, Pod
from captfctl.model.status import DriftSummary, RunError, RunStep
from captfctl.terraform.job.build import SOURCE_CONTAINER
from runner import wire

SUMMARY_MAX = 512
RESOURCES_MAX = 10
DRIFT_RESOURCES_MAX = 20
ADDRESS_MAX = 512
STEPS_MAX = 16
_NAME_MAX = 64
_INT_MAX = 2**31 - 1
_SECONDS_MAX = 2_000_000.0


class Reading(NamedTuple):
    """What was found: a result, or why there is none (`missing`, `truncated`, `invalid`)."""

    result: wire.RunResult | None
    problem: str = ""


def read_result(pod: Pod | None) -> Reading:
    """The result in the `source` container's termination message."""
    state = source_state(pod)
    message = state.terminated.message if state and state.terminated else ""
    if not message.strip():
        return Reading(None, "missing")
    try:
        return Reading(wire.decode(message))
    except wire.NoResult as problem:
        return Reading(None, "truncated" if problem.truncated else "invalid")


def source_status(pod: Pod | None) -> ContainerStatus | None:
    """The status of the pod's main container; None when it has none."""
    statuses = pod.status.container_statuses if pod else []
    return next((status for status in statuses if status.name == SOURCE_CONTAINER), None)


def never_started(pod: Pod | None) -> bool:
    """Whether the node tells of the pod's main container that it never ran."""
    status = source_status(pod)
    if status is None or status.state is None or status.state.waiting is None:
        return False
    return status.last_state is None or status.last_state.terminated is None


def source_state(pod: Pod | None) -> ContainerState | None:
    """The state of the pod's main container; None when it has none."""
    status = source_status(pod)
    return status.state if status else None


def status_steps(result: wire.RunResult) -> list[RunStep]:
    """The steps for `status.lastRun`, within the bounds of its schema
    (api.md: TerraformCluster)."""
    return [
        RunStep(
            name=cut(step.name, _NAME_MAX),
            exit_code=max(-_INT_MAX, min(step.exit, _INT_MAX)),
            duration_milliseconds=round(max(0.0, min(step.seconds, _SECONDS_MAX)) * 1000),
        )
        for step in result.steps[:STEPS_MAX]
        if step.name
    ]


def status_error(result: wire.RunResult) -> RunError | None:
    """The error for `status.lastRun`."""
    error = result.error
    if error is None:
        return None
    return RunError(
        kind=error.kind if error.kind in wire.ERROR_KINDS else "",
        step=cut(error.step or "", _NAME_MAX),
        summary=cut(error.tail.strip(), SUMMARY_MAX),
        resources=[cut(text, ADDRESS_MAX) for text in error.resources if text][:RESOURCES_MAX],
    )


def status_drift(result: wire.RunResult) -> DriftSummary | None:
    """The drift found; None when none was (reconcile.md: Drift). Addresses too long are left
    out."""
    drift = result.drift
    if drift is None or not drift.detected:
        return None
    fitting = (text for text in drift.resources or () if 0 < len(text.encode()) <= ADDRESS_MAX)
    return DriftSummary(
        create=max(drift.create, 0),
        update=max(drift.update, 0),
        replace=max(drift.replace, 0),
        delete=max(drift.delete, 0),
        resources=list(fitting)[:DRIFT_RESOURCES_MAX],
    )

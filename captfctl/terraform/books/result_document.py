"""The runner's result document (20 §19), as it is read back (20 §24).

It was written by a container that runs a module's image, so it is untrusted: typed, bounded in
size by the kubelet and here, and its texts are cut before they go anywhere.
"""

from typing import Any, NamedTuple

import msgspec

from captfctl.model.conditions import cut
from captfctl.model.core import ContainerState, ContainerStatus, Pod
from captfctl.model.status import DriftSummary, RunError, RunStep
from captfctl.terraform.job.build import SOURCE_CONTAINER

RESULT_MAX = 4096
RESULT_VERSION = 1
SUMMARY_MAX = 512
RESOURCES_MAX = 10
DRIFT_RESOURCES_MAX = 20
ADDRESS_MAX = 512
STEPS_MAX = 16
_NAME_MAX = 64
_INT_MAX = 2**31 - 1
_SECONDS_MAX = 2_000_000.0

IMAGE_LAYOUT = "image-layout"
INTERRUPTED = "interrupted"
BLOCKED = "blocked"
PLAN_CHANGED = "plan-changed"
ERROR_KINDS = frozenset({IMAGE_LAYOUT, "step", INTERRUPTED, BLOCKED, PLAN_CHANGED})


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class ResultStep(_Part, frozen=True):
    """One step of a run."""

    name: str = ""
    exit: int = 0
    seconds: float = 0.0


class ResultError(_Part, frozen=True):
    """`step` is None when the run failed outside of a step; `tail` ends its output."""

    kind: str = ""
    step: str | None = None
    tail: str = ""
    resources: tuple[str, ...] = ()


class ResultDrift(_Part, frozen=True):
    """What a drift check found. `resources` is None when the list did not fit."""

    detected: bool = False
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    resources: tuple[str, ...] | None = None

    @property
    def counts(self) -> str:
        """The counts in words."""
        return counts_text(self.create, self.update, self.replace, self.delete)


class ResultChanges(_Part, frozen=True):
    """What Terraform says it did."""

    add: int = 0
    change: int = 0
    destroy: int = 0
    imported: int = msgspec.field(name="import", default=0)


class ResultPlan(_Part, frozen=True):
    """A plan's summary (20 §15.3). `hash` is empty when it was not fingerprinted."""

    hash: str = ""
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    output_changes: int = 0
    imported: int = msgspec.field(name="import", default=0)
    move: int = 0
    forget: int = 0
    resources: tuple[str, ...] = ()
    truncated: bool = False

    @property
    def counts(self) -> str:
        """The counts in words: the four always, the others when there are any (31 §3.5.1)."""
        rare = (
            (self.imported, "to import"),
            (self.move, "to move"),
            (self.forget, "to forget"),
            (self.output_changes, "outputs changed"),
        )
        always = counts_text(self.create, self.update, self.replace, self.delete)
        return ", ".join([always, *(f"{count} {what}" for count, what in rare if count > 0)])


class ResultImage(_Part, frozen=True):
    """The image of a run."""

    ref: str = ""
    providers_mirror: bool = False


class ResultRuntime(_Part, frozen=True):
    """The runtime of a run."""

    command: tuple[str, ...] = ()
    version: str = ""


class RunResult(_Part, frozen=True):
    """One run's result; missing keys have their zero value."""

    version: int = 0
    op: str = ""
    image: ResultImage = ResultImage()
    runtime: ResultRuntime = ResultRuntime()
    steps: tuple[ResultStep, ...] = ()
    drift: ResultDrift | None = None
    error: ResultError | None = None
    changes: ResultChanges | None = None
    plan: ResultPlan | None = None

    @property
    def error_kind(self) -> str:
        """One of `ERROR_KINDS`, `unknown` for any other, empty without an error."""
        if self.error is None:
            return ""
        return self.error.kind if self.error.kind in ERROR_KINDS else "unknown"

    def has_step(self, name: str) -> bool:
        """Whether a step of that name was started."""
        return any(step.name == name for step in self.steps)


def counts_text(create: int, update: int, replace: int, delete: int) -> str:
    """The four counts of a plan in words."""
    return f"{create} to create, {update} to update, {replace} to replace, {delete} to delete"


class Reading(NamedTuple):
    """What was found: a result, or why there is none (`missing`, `truncated`, `invalid`)."""

    result: RunResult | None
    problem: str = ""


_DECODER = msgspec.json.Decoder(RunResult)


def read_result(pod: Pod | None) -> Reading:
    """The result in the `source` container's termination message (11 §8.1)."""
    state = source_state(pod)
    message = state.terminated.message if state and state.terminated else ""
    if not message.strip():
        return Reading(None, "missing")
    try:
        result = _DECODER.decode(message)
    except msgspec.MsgspecError:
        cut_off = len(message.encode()) >= RESULT_MAX and not _is_json(message)
        return Reading(None, "truncated" if cut_off else "invalid")
    if result.version != RESULT_VERSION:
        return Reading(None, "invalid")
    return Reading(result)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=Any)
    except msgspec.MsgspecError:
        return False
    return True


def source_status(pod: Pod | None) -> ContainerStatus | None:
    """The status of the pod's main container; None when it has none."""
    statuses = pod.status.container_statuses if pod else []
    return next((status for status in statuses if status.name == SOURCE_CONTAINER), None)


def source_state(pod: Pod | None) -> ContainerState | None:
    """The state of the pod's main container; None when it has none."""
    status = source_status(pod)
    return status.state if status else None


def status_steps(result: RunResult) -> list[RunStep]:
    """The steps for `status.lastRun`, within the bounds of its schema (30 §12)."""
    return [
        RunStep(
            name=cut(step.name, _NAME_MAX),
            exit_code=max(-_INT_MAX, min(step.exit, _INT_MAX)),
            duration_milliseconds=round(max(0.0, min(step.seconds, _SECONDS_MAX)) * 1000),
        )
        for step in result.steps[:STEPS_MAX]
        if step.name
    ]


def status_error(result: RunResult) -> RunError | None:
    """The error for `status.lastRun`."""
    error = result.error
    if error is None:
        return None
    return RunError(
        kind=error.kind if error.kind in ERROR_KINDS else "",
        step=cut(error.step or "", _NAME_MAX),
        summary=cut(error.tail.strip(), SUMMARY_MAX),
        resources=[cut(text, ADDRESS_MAX) for text in error.resources if text][:RESOURCES_MAX],
    )


def status_drift(result: RunResult) -> DriftSummary | None:
    """The drift found; None when none was (10 §14.2). Addresses too long are left out."""
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

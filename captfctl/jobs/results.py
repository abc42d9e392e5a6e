"""What a finished Job tells: its outcome, its pod and the runner's result (11 §8.1, 20 §24).

The result was written by a container that runs a module's image: it is bounded, typed, and never
trusted beyond what its fields mean.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from captfctl.cluster.door import Door
from captfctl.model.core import Job, Pod
from captfctl.model.ops import Op

RESULT_MAX = 4096


class Outcome(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ErrorKind(StrEnum):
    IMAGE_LAYOUT = "image-layout"
    STEP = "step"
    INTERRUPTED = "interrupted"
    BLOCKED = "blocked"
    PLAN_CHANGED = "plan-changed"
    DEADLINE = "deadline"
    UNKNOWN = "unknown"


class ResultStep(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    exit: int = 0
    seconds: float = 0.0


class ResultError(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = ""
    step: str | None = None
    tail: str = ""
    resources: list[str] = []


class ResultDrift(msgspec.Struct, frozen=True, kw_only=True):
    detected: bool = False
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    resources: list[str] | None = None


class ResultChanges(msgspec.Struct, frozen=True, kw_only=True):
    add: int = 0
    change: int = 0
    destroy: int = 0
    imported: int = msgspec.field(name="import", default=0)


class ResultPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    hash: str = ""
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    output_changes: int = 0
    imported: int = msgspec.field(name="import", default=0)
    move: int = 0
    forget: int = 0
    resources: list[str] = []
    truncated: bool = False


class ResultImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    ref: str = ""
    providers_mirror: bool = False


class ResultRuntime(msgspec.Struct, frozen=True, kw_only=True):
    command: list[str] = []
    version: str = ""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The runner's result document (20 §19)."""

    version: int = 0
    op: str = ""
    image: ResultImage = ResultImage()
    runtime: ResultRuntime = ResultRuntime()
    steps: list[ResultStep] = []
    drift: ResultDrift | None = None
    error: ResultError | None = None
    changes: ResultChanges | None = None
    plan: ResultPlan | None = None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished Job with everything that was learned about it.

    `result`, `pod` are None for a bookkept Job, whose flags come from its annotations (11 §8.1).
    `lock_untouched`: it never took the state lock, so it changed nothing.
    """

    job: Job
    op: Op
    finished_at: datetime
    outcome: Outcome
    deadline: bool
    bookkept: bool
    ok: bool
    interrupted: bool = False
    blocked: bool = False
    plan_changed: bool = False
    plan_unreadable: bool = False
    lock_untouched: bool = False
    pod: Pod | None = None
    result: RunResult | None = None

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def failed(self) -> bool:
        """Counts towards retries and backoff (11 §8.4)."""
        return not (self.ok or self.interrupted or self.blocked or self.plan_changed)


def outcome(job: Job) -> Outcome:
    raise NotImplementedError


def op_of(job: Job) -> Op | None:
    """The operation in the Job's label; None when it names none of the six."""
    raise NotImplementedError


def finish_time(job: Job) -> datetime:
    raise NotImplementedError


def next_attempt(jobs: list[Job], op: Op) -> int:
    """One more than the highest attempt among the listed Jobs of the op (11 §2).

    To be asked with the list from before pruning.
    """
    raise NotImplementedError


def parse_result(pod: Pod | None) -> RunResult | None:
    """The result in the `source` container's termination message; None when there is none."""
    raise NotImplementedError


def read_finished(door: Door, job: Job, *, lock_version: str | None) -> FinishedRun:
    """Read one finished Job. No request is made for one that is bookkept.

    `lock_version` is the state lock Lease's present version, `none` without a Lease, and None
    when it could not be read.
    """
    raise NotImplementedError

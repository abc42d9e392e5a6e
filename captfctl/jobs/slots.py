"""Limits on running Jobs (11 §9)."""

from dataclasses import dataclass

from captfctl.jobs.reader import JobsReader
from captfctl.jobs.waits import Wait
from captfctl.model.ops import Op
from captfctl.model.owner import Owner


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """0 means no limit. `cluster` is `spec.maxActiveJobs` when set, else the flag's value."""

    manager: int = 200
    cluster: int = 20


def slot_wait(reader: JobsReader, owner: Owner, op: Op, limits: SlotLimits) -> Wait | None:
    """The wait for a Job slot, None when one is free. Soft by a few Jobs: nothing is locked."""
    raise NotImplementedError

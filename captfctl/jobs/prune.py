"""Which finished Jobs are kept (11 §8.5)."""

from collections.abc import Sequence

from captfctl.cluster.door import Door
from captfctl.model.core import Job


def prunable(jobs: Sequence[Job], *, successful: int, failed: int) -> list[Job]:
    """The finished Jobs beyond the limits, of any op. Running ones are never among them."""
    raise NotImplementedError


def prune(door: Door, jobs: Sequence[Job], *, successful: int, failed: int) -> list[str]:
    """Delete them with their pods; returns the names."""
    raise NotImplementedError

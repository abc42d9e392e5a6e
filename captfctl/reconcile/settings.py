"""What of the manager's flags a pass depends on (50 §16.2)."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`runner_image` is the image with `/runner`; the limits count Jobs, 0 means no limit.

    `start_patience`: for how long a server that is away is waited for in the middle of a start.
    """

    runner_image: str
    runner_events: bool = True
    drift_default_interval: timedelta = timedelta(minutes=30)
    cluster_operation_gate: bool = True
    max_active_jobs: int = 200
    cluster_max_active_jobs: int = 20
    start_patience: timedelta = timedelta(0)

"""Times and limits (reconcile.md: Requeue times). None of the retry timings can be configured."""

from datetime import timedelta
from typing import Final

# How long a pass that cannot go on waits before the next one.
GATE_REQUEUE: Final = timedelta(seconds=30)
STATE_REQUEUE: Final = timedelta(seconds=60)
LAG_REQUEUE: Final = timedelta(seconds=5)
ACTIVE_JOB_REQUEUE: Final = timedelta(seconds=60)
UNSTARTED_JOB_REQUEUE: Final = timedelta(seconds=3)  # at first; nothing tells why a pod waits
UNSTARTED_JOB_LATER: Final = timedelta(seconds=10)
OFTEN_LOOKED_AT: Final = timedelta(minutes=5)  # for so long after it was created
SLOT_REQUEUE: Final = timedelta(minutes=2)  # plus jitter; a slot that gets free wakes it before
STUCK_JOB_REQUEUE: Final = timedelta(seconds=1)
CONFLICT_REQUEUE: Final = timedelta(seconds=1)

RETRY_BASE: Final = timedelta(seconds=60)
# Also for approval waits, an invalid policy, oversized inputs and missing records.
RETRY_MAX: Final = timedelta(seconds=600)

PENDING_BASE: Final = timedelta(seconds=30)
PENDING_CEILING: Final = timedelta(seconds=300)
CONVERGING_INTERVAL: Final = timedelta(seconds=30)

# What applies when neither the object nor anything it inherits from says otherwise.
DEFAULT_DRIFT_INTERVAL: Final = timedelta(minutes=30)
DEFAULT_HEALTH_INTERVAL: Final = timedelta(seconds=300)
DEFAULT_MEMBERSHIP_INTERVAL: Final = timedelta(seconds=60)
DEFAULT_UNHEALTHY_THRESHOLD: Final = 3
DEFAULT_SUCCESSFUL_HISTORY: Final = 3
DEFAULT_FAILED_HISTORY: Final = 3

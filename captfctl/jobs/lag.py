"""Is the cached list of Jobs behind the server? (11 §11)"""

from collections.abc import Collection
from enum import StrEnum

from captfctl.cluster.door import Door
from captfctl.jobs.leases import Leases
from captfctl.model.owner import Owner


class Lag(StrEnum):
    NONE = "none"
    LAGGING = "lagging"  # finish, look again in 5 s, change nothing
    GONE = "gone"  # `status.activeJob` names a Job that exists nowhere any more


def check_lag(
    door: Door,
    leases: Leases,
    owner: Owner,
    *,
    listed: Collection[str],
    active_job: str,
    block_move: bool,
    deleting: bool,
) -> Lag:
    """To be asked when the cache shows no active Job, before anything is taken as settled.

    `listed` are the names of the cached Jobs, `active_job` the name in `status.activeJob`.
    """
    raise NotImplementedError

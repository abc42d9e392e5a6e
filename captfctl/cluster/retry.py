"""Writing what others write, too: read it, change it, and again when another writer was faster."""

from collections.abc import Callable
from typing import TypeVar

from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound

T = TypeVar("T")

_TRIES = 5


def retry_on_conflict(what: str, write: Callable[[], T]) -> T:
    """What `write` returns, called again while others change `what` between its read and its write.

    Raises `Conflict` when all tries were in vain, and every other error of `write` at once.
    """
    for _ in range(_TRIES):
        try:
            return write()
        except (AlreadyExists, Conflict, NotFound) as error:
            faster = error
    raise Conflict(f"{what} keeps changing while it is written") from faster

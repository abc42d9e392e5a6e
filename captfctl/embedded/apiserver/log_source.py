"""Where pods' logs come from, as the API server wants it."""

from collections.abc import Iterator
from typing import Protocol


class LogStream(Protocol):
    """A container's output, piece by piece. Iterating may block when it is followed.

    `close` may be called from another thread and ends the iteration.
    """

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """End the iteration, from any thread."""
        ...


class LogSource(Protocol):
    """Who keeps the logs: the node agent."""

    def open(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
        previous: bool = False,
    ) -> LogStream:
        """The log from its start, or its last lines, or what is newer than so many seconds.

        `follow`: goes on until the container ends. `timestamps`: each line begins with its time.
        Raises errors of `captfctl.cluster.errors`.
        """
        ...

"""Watch streams: a line of JSON for each change, as long as the client listens.

A watch occupies no thread. The store's writers only wake it; the event loop takes what is there.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.responses import Response

from captfctl.clock import Clock
from captfctl.cluster.door import EventType
from captfctl.cluster.errors import ApiError, Gone
from captfctl.embedded.apiserver.replies import JSON, Subject, failure_status
from captfctl.embedded.apiserver.requests import ApiRequest, Form, Target
from captfctl.embedded.apiserver.streams import Stream
from captfctl.embedded.apiserver.tables import partial, table
from captfctl.embedded.store import EmbeddedStore, RawEvent, RawWatch, Served
from captfctl.embedded.store.violations import VersionTooLarge

BOOKMARK_SECONDS = 60.0
"""A quiet watch that wants bookmarks gets one this often."""

Render = Callable[[RawEvent], bytes]


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """A watch that was asked for: opened by the event loop, which it then belongs to."""

    store: EmbeddedStore
    served: Served
    request: ApiRequest
    target: Target

    def open(self, wake: Callable[[], None]) -> RawWatch:
        """Raises the errors of `captfctl.cluster.errors`."""
        options = self.request.watch_options(self.target.name)
        return self.store.watch(self.served, self.target.namespace, options, wake=wake)


class WatchStreams:
    """All open watches. Belongs to one event loop, except `end`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: set[asyncio.Event] = set()
        self._ending = False

    def end(self) -> None:
        """End every watch, and those to come, at once. To be called in the event loop."""
        self._ending = True
        for signal in self._open:
            signal.set()

    def response(self, plan: WatchPlan) -> Response:
        """The stream of a watch. To be called in the event loop. Raises as `EmbeddedStore.watch`.

        A watch that starts too far back is answered by an event that says so.
        """
        loop = asyncio.get_running_loop()
        signal = asyncio.Event()
        try:
            watch = plan.open(_waker(loop, signal))
        except (Gone, VersionTooLarge) as error:
            return Response(_error_line(error, plan.target), media_type=JSON)
        self._open.add(signal)

        def close() -> None:
            self._open.discard(signal)
            watch.close()

        return Stream(self._lines(plan, watch, signal), close, JSON)

    async def _lines(
        self, plan: WatchPlan, watch: RawWatch, signal: asyncio.Event
    ) -> AsyncIterator[bytes]:
        """The stream's body. Errors after the start of a watch are events of their own."""
        try:
            async for piece in self._pieces(plan, watch, signal):
                yield piece
        except ApiError as error:
            yield _error_line(error, plan.target)

    async def _pieces(
        self, plan: WatchPlan, watch: RawWatch, signal: asyncio.Event
    ) -> AsyncIterator[bytes]:
        render = self._renderer(plan)
        bookmarks = plan.request.flag("allowWatchBookmarks")
        timeout = plan.request.number("timeoutSeconds")
        until = self._clock.monotonic() + timeout if timeout else None
        while not self._ending:
            signal.clear()
            events = watch.poll()
            if events:
                yield b"".join(map(render, events))
                continue
            if watch.ended:
                break
            quiet = not await _wait(signal, self._patience(until))
            if quiet and bookmarks:
                yield render(watch.bookmark())
            if quiet and until is not None and self._clock.monotonic() >= until:
                break

    def _patience(self, until: float | None) -> float:
        left = BOOKMARK_SECONDS if until is None else until - self._clock.monotonic()
        return max(0.0, min(BOOKMARK_SECONDS, left))

    def _renderer(self, plan: WatchPlan) -> Render:
        """How an event becomes a line, in the form that the request accepts."""
        form = plan.request.accepted.form
        if form is Form.TABLE:
            include = plan.request.include

            def shown(event: RawEvent) -> bytes:
                items = () if event.type is EventType.BOOKMARK else (event.body,)
                version = event.resource_version
                now = self._clock.now()
                return table(plan.served, items, now, include=include, resource_version=version)

            return lambda event: _line(event.type, shown(event))
        if form.partial:
            return lambda event: _line(event.type, partial(event.body))
        return lambda event: _line(event.type, event.body)


def _waker(loop: asyncio.AbstractEventLoop, signal: asyncio.Event) -> Callable[[], None]:
    def wake() -> None:
        if not signal.is_set():  # else the loop is about to look anyway
            try:
                loop.call_soon_threadsafe(signal.set)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return

    return wake


async def _wait(signal: asyncio.Event, seconds: float) -> bool:
    """Whether the signal came in time. One timer: cheaper than a task for every wait."""
    over = False

    def end() -> None:
        nonlocal over
        over = True
        signal.set()

    timer = asyncio.get_running_loop().call_later(seconds, end)
    try:
        await signal.wait()
    finally:
        timer.cancel()
    return not over


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


def _error_line(error: ApiError, target: Target) -> bytes:
    return _line("ERROR", failure_status(error, Subject.of(target)).encode())

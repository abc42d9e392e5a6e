"""A watch on a real API server: JSON documents, one a line, that keep coming."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec
from urllib3 import exceptions as http_errors
from urllib3.response import BaseHTTPResponse

from captfctl.cluster.door import EventType, WatchEvent
from captfctl.cluster.errors import ApiError, Gone
from captfctl.cluster.live_errors import Request, broken, decode_status, explained
from captfctl.model.meta import PartialObject

T = TypeVar("T")

CHUNK = 65536


class Line(msgspec.Struct):
    """One event as it is sent. `object` stays bytes until its type is known."""

    type: str
    object: msgspec.Raw


_LINES = msgspec.json.Decoder(Line)
_METADATA = msgspec.json.Decoder(PartialObject)


class LiveWatch(Generic[T]):
    """A running watch. Iterate it once; `close` may be called from any thread.

    Raises `Gone` when the server has forgotten the version, `Unavailable` when the connection broke
    or the server said nothing for too long.
    """

    def __init__(
        self,
        response: BaseHTTPResponse,
        request: Request,
        decode: Callable[[bytes], T],
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._response = response
        self._request = request
        self._decode = decode
        self._now = now
        self._closed = False
        self.heard_at = now()

    def __iter__(self) -> Iterator[WatchEvent[T]]:
        try:
            for line in self._lines():
                yield self._event(line)
        finally:
            self._response.close()

    def close(self) -> None:
        """End the iteration, also one that waits for the server in another thread."""
        self._closed = True
        self.give_up()

    def give_up(self) -> None:
        """Make the iteration fail as if the connection broke."""
        # The socket is only shut down: closing it is left to the thread that reads from it.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._response.shutdown()

    def __enter__(self) -> "LiveWatch[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._response.close()

    def _lines(self) -> Iterator[bytes]:
        """Complete lines, as soon as each is there."""
        rest = b""
        try:
            for chunk in self._response.stream(CHUNK):
                self.heard_at = self._now()
                *lines, rest = (rest + chunk).split(b"\n")
                yield from filter(None, lines)
                if self._closed:
                    return
        except (http_errors.HTTPError, OSError, ValueError) as error:
            if self._closed:
                return
            if isinstance(error, http_errors.HTTPError):
                raise broken(error, self._request) from error
            raise broken(http_errors.ProtocolError(error), self._request) from error

    def _event(self, line: bytes) -> WatchEvent[T]:
        try:
            kind, body = self._parts(line)
            if kind is EventType.BOOKMARK:
                return WatchEvent(kind, None, _METADATA.decode(body).metadata.resource_version)
            version = _METADATA.decode(body).metadata.resource_version
            return WatchEvent(kind, self._decode(body), version)
        except (msgspec.DecodeError, ValueError) as error:
            raise ApiError(
                f"{self._request}: the server sent an event that cannot be read", why=str(error)
            ) from error

    def _parts(self, line: bytes) -> tuple[EventType, bytes]:
        event = _LINES.decode(line)
        body = bytes(event.object)
        if event.type == "ERROR":
            raise self._failure(body)
        return EventType(event.type), body

    def _failure(self, body: bytes) -> ApiError:
        status = decode_status(body)
        if status is None:
            return ApiError(f"{self._request}: the server ended the watch without saying why")
        if status.code == 410:
            return Gone(status.message or "the version is no longer known")
        return explained(status, status.code, {}, self._request)

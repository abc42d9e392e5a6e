"""Requests to an API server: authentication, time limits, retries, errors."""

import contextlib
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from urllib3 import exceptions as http_errors
from urllib3.response import BaseHTTPResponse

from captfctl.clock import Clock
from captfctl.cluster.errors import ApiError, Ended, TooManyRequests, Unauthorized
from captfctl.cluster.live_access import Access, Connections
from captfctl.cluster.live_errors import Request, broken, never_sent, refusal
from captfctl.cluster.live_exchange import Answer
from captfctl.errors import InputError

RETRIES_WHEN_BUSY = 3
"""How often a request is repeated that the server refused because it is busy (429: not done)."""

LONGEST_WAIT = 10.0
"""Seconds we let a busy server keep a caller waiting per repetition; a pass can come back later."""


_PLAIN = re.compile(r"[A-Za-z0-9/._:@~-]*")
"""Paths that are the same when quoted: nearly all."""

A = TypeVar("A", Answer, BaseHTTPResponse)
_Send = Callable[[Connections, str, str, Mapping[str, str], bytes | None], A]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits, in seconds.

    `silence`: how long a watch may say nothing before its server counts as hung. Watches that ask
    for it are ended by the server before that, and begun again.
    """

    connect: float = 10.0
    read: float = 30.0
    silence: float = 45.0


class Stream(Protocol):
    """An answer that goes on and on."""

    @property
    def heard_at(self) -> float:
        """When something of it came last, as `Requests.now` counts."""
        ...

    def give_up(self) -> None:
        """Make its reader fail now. May be called from any thread."""
        ...


class Requests:
    """Sends requests; every method raises the errors of `captfctl.cluster.errors`."""

    def __init__(self, access: Access, limits: Limits, clock: Clock) -> None:
        self._access = access
        self._limits = limits
        self._clock = clock
        self._closed = threading.Event()
        self._abandoned = False
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._base = urlsplit(access.server).path

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._access.server

    @property
    def who(self) -> str:
        """The user we act as, as the configuration names it."""
        return self._access.who

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """Send a request and return the answer's body."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        return self._answered(method, path, query, headers, body, self._whole).data

    def stream(
        self, path: str, query: Mapping[str, str], *, accept: str = "application/json"
    ) -> BaseHTTPResponse:
        """Start a GET whose answer goes on and on; the caller closes it."""
        return self._answered("GET", path, query, {"Accept": accept}, None, self._begun)

    def request(self, method: str, path: str) -> Request:
        """A request as error messages name it."""
        return Request(method, path, self.server, self.who, self._access.proxy)

    def close(self) -> None:
        """Close idle connections and end waits for a busy server."""
        self._closed.set()
        self._access.close()

    def abandon(self) -> None:
        """End every request and wait now, and refuse what is asked from now on with `Ended`."""
        self._abandoned = True
        self._closed.set()
        self._access.abandon()

    def now(self) -> float:
        """Seconds on the clock by which `Stream.heard_at` counts."""
        return self._clock.monotonic()

    def follow(self, stream: "Stream") -> None:
        """Give the stream up as soon as it is known that its server answers nobody."""
        self._streams.add(stream)

    def _nobody_answered(self, since: float) -> None:
        """A request waited in vain: streams that have been silent for as long lead nowhere."""
        for stream in list(self._streams):
            if stream.heard_at < since:
                stream.give_up()

    def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
        send: _Send[A],
    ) -> A:
        url = path if _PLAIN.fullmatch(path) else quote(path, safe="/:@")
        if query:
            url += f"?{urlencode(query)}"
        request = self.request(method, path)
        busy = 0
        renewed = False
        while True:
            generation, response = self._once(request, url, headers, body, send)
            if response.status < 300:
                return response
            error = _refused(response, request)
            try:
                if response.status == 401 and not renewed:
                    renewed = True  # a token or certificate file may have been replaced
                    with _as_unauthorized():
                        self._access.renew(generation)
                elif isinstance(error, TooManyRequests) and busy < RETRIES_WHEN_BUSY:
                    busy += 1
                    if self._clock.wait(self._closed, min(error.retry_after, LONGEST_WAIT)):
                        raise error
                else:
                    raise error
            finally:
                del error  # it refers to this frame, and this frame to it: break the cycle

    def _once(
        self,
        request: Request,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        send: _Send[A],
    ) -> tuple[int, A]:
        """One request; a read that a dead idle connection swallowed is sent once more."""
        for last in (False, True):
            if self._abandoned:
                raise Ended(f"{request}: the connection to {self.server} was given up")
            began = self.now()
            with _as_unauthorized():
                connections, credentials, generation = self._access.connection(
                    self._clock.monotonic()
                )
            try:
                sent = _with(headers, credentials)
                return generation, send(connections, request.method, url, sent, body)
            except http_errors.HTTPError as error:
                if isinstance(error, http_errors.ReadTimeoutError):
                    self._nobody_answered(began)
                if last or not _may_repeat(error, request):
                    raise broken(error, request) from error
        raise AssertionError("unreachable")

    def _whole(
        self,
        connections: Connections,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Answer:
        """The answer with its whole body."""
        limits = self._limits
        if connections.direct is not None:
            target = self._base + url
            return connections.direct.send(
                method, target, headers, body, connect=limits.connect, read=limits.read
            )
        response = self._through_pool(connections, method, url, headers, body, limits.read)
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.headers.items()},
            response.data,
        )

    def _begun(
        self,
        connections: Connections,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> BaseHTTPResponse:
        """The answer with its body still to come."""
        return self._through_pool(
            connections, method, url, headers, body, self._limits.silence, preload=False
        )

    def _through_pool(
        self,
        connections: Connections,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        read: float,
        *,
        preload: bool = True,
    ) -> BaseHTTPResponse:
        return connections.pool.request(
            method,
            self.server + url,
            body=body,
            headers=headers,
            timeout=urllib3.Timeout(connect=self._limits.connect, read=read),
            retries=False,
            redirect=False,
            preload_content=preload,
        )


@contextlib.contextmanager
def _as_unauthorized() -> Iterator[None]:
    """While we run, configuration that can no longer be read means that nobody knows us."""
    try:
        yield
    except InputError as error:
        raise Unauthorized(error.what, where=error.where, why=error.why, do=error.do) from error


def _with(headers: Mapping[str, str], credentials: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(credentials, urllib3.HTTPHeaderDict):
        return {**headers, **credentials}
    several = urllib3.HTTPHeaderDict(headers)
    several.extend(credentials)
    return several


def _may_repeat(error: http_errors.HTTPError, request: Request) -> bool:
    """Idle connections die unnoticed: what cannot have had an effect may be sent again."""
    if isinstance(error, http_errors.ClosedPoolError):
        return True
    aborted = isinstance(error, http_errors.ProtocolError)
    return aborted and not request.writes and not never_sent(error)


def _refused(response: Answer | BaseHTTPResponse, request: Request) -> ApiError:
    if isinstance(response, Answer):
        return refusal(response.status, response.data, response.headers, request)
    try:
        body = response.data
    except http_errors.HTTPError:
        body = b""
    finally:
        response.release_conn()
    headers = {name.lower(): value for name, value in response.headers.items()}
    return refusal(response.status, body, headers, request)

"""The ASGI application: who asks, what for, and who answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from dataclasses import replace

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from captfctl.clock import Clock
from captfctl.cluster.errors import ApiError, TooLarge, Unavailable
from captfctl.embedded.apiserver.auth import Authenticator, Identity, refuse_impersonation
from captfctl.embedded.apiserver.discovery import HEALTH, Discovery
from captfctl.embedded.apiserver.log_source import LogSource, LogStream
from captfctl.embedded.apiserver.logs import open_log
from captfctl.embedded.apiserver.openapi import V2, V3, OpenApi
from captfctl.embedded.apiserver.openapi_v2 import PROTOBUF
from captfctl.embedded.apiserver.replies import TEXT, Reply, Status, Subject, failure, json_reply
from captfctl.embedded.apiserver.requests import (
    ApiRequest,
    Target,
    no_such_path,
    parse_accept,
    parse_target,
)
from captfctl.embedded.apiserver.resources import Resources
from captfctl.embedded.apiserver.reviews import Reviews
from captfctl.embedded.apiserver.streams import Stream
from captfctl.embedded.apiserver.watches import WatchPlan, WatchStreams
from captfctl.embedded.store import EmbeddedStore, Served
from captfctl.model.core import Pod
from captfctl.version import VERSION

MAX_BODY = 3 * 1024 * 1024
KUBERNETES = ("1", "32")
"""The Kubernetes version whose API this is a part of."""

_ANONYMOUS = Identity("system:anonymous", groups=("system:unauthenticated",))
_LOG = logging.getLogger(__name__)


Answer = Reply | WatchPlan | LogStream


class App:
    """Answers requests over a store; `workers` do blocking work, `readers` read logs."""

    def __init__(
        self,
        store: EmbeddedStore,
        clock: Clock,
        authenticator: Authenticator,
        logs: LogSource | None,
        workers: Executor,
        readers: Executor,
    ) -> None:
        self._store = store
        self._clock = clock
        self._authenticator = authenticator
        self._logs = logs
        self._workers = workers
        self._readers = readers
        self._resources = Resources(store, clock)
        self._reviews = Reviews(authenticator)
        self._discovery = Discovery(store.registry)
        self._openapi = OpenApi(store.registry)
        self._watches = WatchStreams(clock)
        self._open_logs: set[LogStream] = set()

    def end_streams(self) -> None:
        """End all watches and logs. To be called in the event loop."""
        self._watches.end()
        for stream in list(self._open_logs):
            stream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await self._respond(Request(scope, receive))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, http: Request) -> Response:
        target = parse_target(http.url.path)
        request = None
        try:
            request = await self._read(http)
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._workers, self._answer, request, target)
            if isinstance(answer, WatchPlan):
                return self._watches.response(answer)
        except ApiError as error:
            return _plain(failure(error, self._subject(request, target)))
        except Exception:
            # The text of an unexpected error may hold anything: it goes to the log's reader only.
            _LOG.exception("the API server failed to answer %s %s", http.method, http.url.path)
            return _plain(_internal_error())
        if isinstance(answer, Reply):
            return _plain(answer)
        self._open_logs.add(answer)
        return Stream(self._log_pieces(answer), lambda: self._close_log(answer), TEXT)

    async def _read(self, http: Request) -> ApiRequest:
        """The request, its sender known. Raises `Unauthorized`, `TooLarge`, `NotAcceptable`."""
        path = http.url.path.rstrip("/") or "/"  # some clients ask for `/version/`
        identity = _ANONYMOUS
        if path not in HEALTH and path != "/version":
            header = http.headers.get("authorization", "")
            identity = self._authenticator.authenticate(header, self._clock.now())
            refuse_impersonation(http.headers, identity)
        return ApiRequest(
            method=http.method,
            path=path,
            query=dict(http.query_params),
            headers=dict(http.headers),
            body=await _body(http),
            identity=identity,
            accepted=parse_accept(
                http.headers.get("accept", ""), also=PROTOBUF if path == V2 else ""
            ),
        )

    def _answer(self, request: ApiRequest, target: Target | None) -> Answer:
        """Runs in a worker. Raises `ApiError`."""
        if target is None:
            return self._about_the_server(request)
        if Reviews.covers(target):
            return self._reviews.answer(request, target, self._clock.now())
        served = self._store.registry.find(target.group, target.version, target.plural)
        if target.namespace and not served.resource.namespaced:
            raise no_such_path(request.path)
        if (request.method, served.resource.name, target.subresource) == ("GET", "pods", "log"):
            return self._log(request, served, target)
        if request.is_watch:
            return WatchPlan(self._store, served, request, target)
        return self._resources.answer(request, served, target)

    def _log(self, request: ApiRequest, served: Served, target: Target) -> LogStream:
        if self._logs is None:
            raise Unavailable("no node keeps logs here")
        body = self._store.get(served, target.name, target.namespace)
        pod: Pod = msgspec.json.decode(body, type=Pod)
        return open_log(self._logs, request, pod, self._clock.now())

    def _about_the_server(self, request: ApiRequest) -> Reply:
        path = request.path
        if path in HEALTH:
            return Reply(b"ok", content_type=TEXT)
        if path == "/version":
            return json_reply(_version())
        if path.startswith((V2, V3)):
            found = self._openapi.answer(path, request.accepted.media)
        else:
            found = self._discovery.answer(path, request.accepted)
        if found is None:
            raise no_such_path(path)
        return found

    async def _log_pieces(self, stream: LogStream) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        pieces = iter(stream)
        while True:
            piece = await loop.run_in_executor(self._readers, next, pieces, None)
            if piece is None:
                break
            yield piece

    def _close_log(self, stream: LogStream) -> None:
        self._open_logs.discard(stream)
        stream.close()

    def _subject(self, request: ApiRequest | None, target: Target | None) -> Subject:
        """What a refused request was about, as far as that can be told."""
        if target is None:
            return Subject()
        try:
            served = self._store.registry.find(target.group, target.version, target.plural)
        except ApiError:
            return Subject.of(target)
        subject = Subject.of(target, served.resource.kind)
        if request is None or request.method != "POST" or target.name:
            return subject
        return replace(subject, name=request.name_in_body)


async def _body(http: Request) -> bytes:
    pieces, size = [], 0
    async for piece in http.stream():
        size += len(piece)
        if size > MAX_BODY:
            raise TooLarge(f"the request's body is larger than {MAX_BODY} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _plain(reply: Reply) -> Response:
    response = Response(reply.body, reply.status, media_type=reply.content_type)
    for name, value in reply.headers:
        response.headers.append(name, value)
    return response


def _internal_error() -> Reply:
    message = "the API server failed; its own log tells why"
    status = Status(status="Failure", message=message, reason="InternalError", code=500)
    return Reply(status.encode(), 500)


def _version() -> dict[str, str]:
    major, minor = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+captfctl.{VERSION}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "any/any",
    }

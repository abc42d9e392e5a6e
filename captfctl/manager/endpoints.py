"""What the manager serves besides its health: `/metrics`, stack traces and the log level, for who
may ask (manager.md: Endpoints)."""

import logging
import sys
import threading
import traceback
from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from captfctl.cluster.door import Door
from captfctl.errors import CaptfError
from captfctl.model.core import Review
from captfctl.model.resource import Resource
from captfctl.serving.http import NOT_FOUND, Answer, Request, Respond

TOKEN_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False, Review
)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False, Review
)
LEVELS = {"0": logging.ERROR, "1": logging.WARNING, "2": logging.INFO}

_UNAUTHORIZED = Answer(401, b"a bearer token is needed\n")
_FORBIDDEN = Answer(403, b"not permitted\n")


def insecure(registry: CollectorRegistry) -> Respond:
    """`/metrics` alone, for anybody."""

    def respond(request: Request) -> Answer:
        return _metrics(registry) if request.path == "/metrics" else NOT_FOUND

    return respond


def secure(registry: CollectorRegistry, door: Door) -> Respond:
    """Each request needs a token whose user may do that method on that path."""
    pages: dict[tuple[str, str], Callable[[Request], Answer]] = {
        ("GET", "/metrics"): lambda _: _metrics(registry),
        ("GET", "/debug/stacks"): lambda _: Answer(200, _stacks().encode()),
        ("PUT", "/debug/flags/v"): _set_level,
    }

    def respond(request: Request) -> Answer:
        refusal = _refusal(door, request)
        if refusal is not None:
            return refusal
        page = pages.get((request.method, request.path))
        return page(request) if page is not None else NOT_FOUND

    return respond


def _metrics(registry: CollectorRegistry) -> Answer:
    return Answer(200, generate_latest(registry), CONTENT_TYPE_LATEST)


def _refusal(door: Door, request: Request) -> Answer | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return _UNAUTHORIZED
    try:
        user = _user(door, token.strip())
        if user is None:
            return _UNAUTHORIZED
        return None if _permitted(door, user, request) else _FORBIDDEN
    except CaptfError as problem:
        return Answer(500, f"the request could not be checked: {problem.code}\n".encode())


def _user(door: Door, token: str) -> dict[str, object] | None:
    review = Review(
        api_version=TOKEN_REVIEWS.api_version,
        kind=TOKEN_REVIEWS.kind,
        spec={"token": token},
    )
    status = door.create(TOKEN_REVIEWS, review).status
    return status.get("user", {}) if status.get("authenticated") else None


def _permitted(door: Door, user: dict[str, object], request: Request) -> bool:
    review = Review(
        api_version=ACCESS_REVIEWS.api_version,
        kind=ACCESS_REVIEWS.kind,
        spec={
            "user": user.get("username", ""),
            "groups": user.get("groups", []),
            "uid": user.get("uid", ""),
            "extra": user.get("extra", {}),
            "nonResourceAttributes": {"path": request.path, "verb": request.method.lower()},
        },
    )
    return bool(door.create(ACCESS_REVIEWS, review).status.get("allowed"))


def _set_level(request: Request) -> Answer:
    text = request.body.decode(errors="replace").strip()
    if not (text.isascii() and text.isdigit()):
        return Answer(400, b"the level must be a whole number\n")
    logging.getLogger("captfctl").setLevel(LEVELS.get(text, logging.DEBUG))
    return Answer(200, f"successfully set level to {text}\n".encode())


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)

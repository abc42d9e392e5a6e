"""Answers, and errors in the form of `metav1.Status`."""

from dataclasses import dataclass
from typing import Any

import msgspec

from captfctl.cluster.errors import ApiError, Cause, Invalid, TooManyRequests
from captfctl.embedded.apiserver.apply import ApplyConflict
from captfctl.embedded.apiserver.refusals import ABOUT_THE_REQUEST, InvalidOptions
from captfctl.embedded.apiserver.requests import Target
from captfctl.embedded.store import DeniedByPolicy
from captfctl.embedded.store.violations import VersionTooLarge

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """What a request was about, for `Status.details`."""

    group: str = ""
    plural: str = ""
    kind: str = ""
    name: str = ""

    @classmethod
    def of(cls, target: Target | None, kind: str = "") -> "Subject":
        """What the request's path names; empty without a resource."""
        if target is None:
            return cls()
        return cls(target.group, target.plural, kind, target.name)


class _Cause(msgspec.Struct, omit_defaults=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[_Cause] = msgspec.field(default_factory=list)
    retry_after_seconds: int = 0


class Status(msgspec.Struct, rename="camel", omit_defaults=True):
    """A `metav1.Status`."""

    status: str
    message: str = ""
    reason: str = ""
    details: _Details | None = None
    code: int = 0

    def encode(self) -> bytes:
        """The Status as JSON."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
        return msgspec.json.encode(head | msgspec.to_builtins(self))


def json_reply(value: Any, status: int = 200, content_type: str = JSON) -> Reply:
    """An answer with a JSON body."""
    return Reply(msgspec.json.encode(value), status, content_type)


def success(subject: Subject, uid: str) -> Reply:
    """The answer to a delete that left nothing behind."""
    details = _Details(subject.name, subject.group, subject.plural, uid)
    return Reply(Status(status="Success", details=details).encode())


def failure_status(error: ApiError, subject: Subject) -> Status:
    """The Status for an error. Its `details` name what the request was about."""
    causes: tuple[Cause, ...] = getattr(error, "causes", ())
    if isinstance(error, InvalidOptions):
        subject = Subject(InvalidOptions.GROUP, kind=error.kind)
    elif isinstance(error, (*ABOUT_THE_REQUEST, ApplyConflict)):
        subject = Subject()
    named = isinstance(error, Invalid) and not isinstance(error, DeniedByPolicy)
    kind = subject.kind if named else subject.plural
    details = _Details(
        name=subject.name,
        group=subject.group,
        kind=kind,
        causes=[_Cause(cause.reason, cause.message, cause.field) for cause in causes],
    )
    if isinstance(error, TooManyRequests | VersionTooLarge):
        details.retry_after_seconds = max(1, round(error.retry_after))
    return Status(
        status="Failure",
        message=str(error),
        reason=error.reason,
        details=details,
        code=error.status,
    )


def failure(error: ApiError, subject: Subject) -> Reply:
    """The answer to a request that ended in an error."""
    status = failure_status(error, subject)
    headers: tuple[tuple[str, str], ...] = ()
    if status.details and status.details.retry_after_seconds:
        headers = (("Retry-After", str(status.details.retry_after_seconds)),)
    return Reply(status.encode(), error.status, headers=headers)


def warning_headers(warnings: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """RFC 7234 warnings, which kubectl prints."""
    return tuple(("Warning", f'299 - "{_quoted(text)}"') for text in warnings)


def _quoted(text: str) -> str:
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"')

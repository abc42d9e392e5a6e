"""What an API server's refusals and a connection's failures mean to us."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from urllib3 import exceptions as http_errors

from captfctl.cluster import errors

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked, for messages: never with a body or a header."""

    method: str
    path: str
    server: str
    who: str
    proxy: str = ""

    @property
    def writes(self) -> bool:
        """Whether it may change something on the server."""
        return self.method in WRITES

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class StatusCause(msgspec.Struct, kw_only=True):
    """One cause in a `metav1.Status`."""

    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(msgspec.Struct, rename="camel", kw_only=True):
    """The details of a `metav1.Status`."""

    name: str = ""
    kind: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: float = 0


class Status(msgspec.Struct, kw_only=True):
    """A `metav1.Status`: how an API server explains itself."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


_STATUS = msgspec.json.Decoder(Status)

_BY_CODE: dict[int, type[errors.ApiError]] = {
    kind.status: kind
    for kind in (
        errors.BadRequest,
        errors.NotFound,
        errors.MethodNotAllowed,
        errors.Conflict,
        errors.Gone,
        errors.TooLarge,
        errors.UnsupportedMediaType,
    )
}


def decode_status(body: bytes) -> Status | None:
    """The server's explanation; None when the body is something else (a proxy's page)."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def refusal(
    code: int, body: bytes, headers: Mapping[str, str], request: Request
) -> errors.ApiError:
    """The error for an answer with HTTP status `code`."""
    status = decode_status(body)
    if status is None:
        return _unexplained(code, headers, request)
    return explained(status, code, headers, request)


def explained(
    status: Status, code: int, headers: Mapping[str, str], request: Request
) -> errors.ApiError:
    """The error for a `Status`, from an answer or from a watch."""
    message = status.message or f"{request}: {status.reason or code}"
    if "request is too large" in message:  # etcd's own limit arrives as an internal error
        return errors.TooLarge(message)
    if code == 401:
        return _unauthorized(request, status.message)
    if code == 403:
        causes = _causes(status)
        if any(cause.reason == errors.NamespaceTerminating.CAUSE for cause in causes):
            return errors.NamespaceTerminating(
                message, causes, do="wait until the namespace is gone, or use another one"
            )
        return errors.Forbidden(
            message, do=f"ask for the permission, or act as somebody other than {request.who}"
        )
    if code == 409 and status.reason == "AlreadyExists":
        return errors.AlreadyExists(message)
    if code == 422:
        return errors.Invalid(message, _causes(status))
    if code == 429:
        return errors.TooManyRequests(message, retry_after(status, headers))
    if code >= 500:
        return errors.Unavailable(
            f"the API server at {request.server} failed",
            why=message,
            outcome_unknown=request.writes,
        )
    return _BY_CODE.get(code, errors.ApiError)(message)


def _causes(status: Status) -> tuple[errors.Cause, ...]:
    causes = (status.details.causes if status.details else None) or ()
    return tuple(
        errors.Cause(cause.field, cause.message, cause.reason or "FieldValueInvalid")
        for cause in causes
    )


def retry_after(status: Status | None, headers: Mapping[str, str]) -> float:
    """The seconds that the server asks to wait; 1 when it does not say.

    Names of headers are in lower case.
    """
    header = headers.get("retry-after", "")
    if header.isdigit():
        return float(header)
    details = status.details if status else None
    return (details.retry_after_seconds if details else 0) or 1.0


def _unexplained(code: int, headers: Mapping[str, str], request: Request) -> errors.ApiError:
    phrase = f"HTTP {code} {http.client.responses.get(code, '')}".rstrip()
    if code == 401:
        return _unauthorized(request, phrase)
    if code == 403:
        return errors.Forbidden(f"{request} is forbidden to {request.who}", why=phrase)
    if code == 404:
        return errors.NotFound(
            f"the API server at {request.server} does not serve {request.path}",
            do="install the CustomResourceDefinitions there, or check which server the kubeconfig "
            "names",
        )
    if code == 429:
        return errors.TooManyRequests(f"{request}: {phrase}", retry_after(None, headers))
    if code >= 500:
        return errors.Unavailable(
            f"the API server at {request.server} failed", why=phrase, outcome_unknown=request.writes
        )
    return _BY_CODE.get(code, errors.ApiError)(f"{request}: {phrase}")


def _unauthorized(request: Request, why: str) -> errors.ApiError:
    return errors.Unauthorized(
        f"the API server at {request.server} does not accept the credentials of {request.who}",
        why=why,
        do="log in again, or use another kubeconfig or context",
    )


def never_sent(error: http_errors.HTTPError) -> bool:
    """Whether the connection failed before any of the request went out."""
    untrusted = isinstance(error, http_errors.SSLError) and "CERTIFICATE" in str(error).upper()
    return untrusted or isinstance(
        error,
        http_errors.NewConnectionError
        | http_errors.ConnectTimeoutError
        | http_errors.ProxyError
        | http_errors.ClosedPoolError
        | http_errors.LocationValueError,
    )


def broken(error: http_errors.HTTPError, request: Request) -> errors.Unavailable:
    """The error for a request without an answer."""
    sent = not never_sent(error)
    server = request.server + (f" through proxy {request.proxy}" if request.proxy else "")
    return errors.Unavailable(
        f"no answer from the API server at {server}"
        if sent
        else f"the API server at {server} cannot be reached",
        why=_reason(error),
        do="" if sent else "check that it runs and that the kubeconfig names the right one",
        outcome_unknown=sent and request.writes,
    )


def _reason(error: http_errors.HTTPError) -> str:
    """The innermost cause in a few words, without addresses of objects in memory.

    And without a word of an answer that was cut off: it may be part of a Secret.
    """
    if isinstance(error, http_errors.ConnectTimeoutError) and not isinstance(
        error, http_errors.NewConnectionError
    ):
        return "no connection within the time limit"
    if isinstance(error, http_errors.NameResolutionError):
        return "its host name does not resolve"
    if isinstance(error, http_errors.ReadTimeoutError):
        return "nothing came within the time limit"
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    if isinstance(cause, http.client.HTTPException | ValueError) and not isinstance(cause, OSError):
        return "the answer was cut off"
    text = str(cause.args[0]) if cause.args else str(cause)
    return text or type(cause).__name__

"""What a door to objects can refuse with. The names follow Kubernetes' `Status.reason`."""

from dataclasses import dataclass
from typing import ClassVar

from captfctl.errors import CaptfError


@dataclass(frozen=True, slots=True)
class Cause:
    """One violated rule of an `Invalid`: the field's path (`spec.source.image`) and the problem."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class ApiError(CaptfError):
    """A request that a door refused or could not carry out. `status` is the HTTP status."""

    code = "ApiError"
    status: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"


class BadRequest(ApiError):
    """The request makes no sense to the server."""

    code = "BadRequest"
    status = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    """The server does not know who asks."""

    code = "Unauthorized"
    status = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """The server knows who asks, and refuses."""

    code = "Forbidden"
    status = 403
    reason = "Forbidden"


class NamespaceTerminating(Forbidden):
    """Nothing new can be created in a namespace that is being deleted: no right would help."""

    code = "NamespaceTerminating"
    CAUSE: ClassVar[str] = "NamespaceTerminating"

    def __init__(self, what: str, causes: tuple[Cause, ...] = (), **facts: str) -> None:
        super().__init__(what, **facts)
        self.causes = causes


class NotFound(ApiError):
    """The object, or its kind, does not exist."""

    code = "NotFound"
    status = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The resource does not offer this verb."""

    code = "MethodNotAllowed"
    status = 405
    reason = "MethodNotAllowed"


class Conflict(ApiError):
    """A stale resourceVersion, a failed precondition, or a field owned by another applier."""

    code = "Conflict"
    status = 409
    reason = "Conflict"


class AlreadyExists(ApiError):
    """An object of that name exists."""

    code = "AlreadyExists"
    status = 409
    reason = "AlreadyExists"


class Gone(ApiError):
    """The resourceVersion or continue token is older than what is kept: list again."""

    code = "Expired"
    status = 410
    reason = "Expired"


class TooLarge(ApiError):
    """The object has more bytes than the server stores."""

    code = "TooLarge"
    status = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """The body is in a form that the server does not read."""

    code = "UnsupportedMediaType"
    status = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks its schema or a validation rule; every violation is listed."""

    code = "Invalid"
    status = 422
    reason = "Invalid"

    def __init__(self, what: str, causes: tuple[Cause, ...] = (), **facts: str) -> None:
        super().__init__(what, **facts)
        self.causes = causes


class TooManyRequests(ApiError):
    """`retry_after` is in seconds."""

    code = "TooManyRequests"
    status = 429
    reason = "TooManyRequests"

    def __init__(self, what: str, retry_after: float = 1.0, **facts: str) -> None:
        super().__init__(what, **facts)
        self.retry_after = retry_after


class Ended(ApiError):
    """The door was given up: nothing is asked any more, and nothing is worth trying again."""

    code = "Ended"
    exit_code = 3
    status = 503
    reason = "ServiceUnavailable"


class Unavailable(ApiError):
    """No answer, or a server error. `outcome_unknown`: a write may have taken place."""

    code = "Unavailable"
    exit_code = 3
    status = 503
    reason = "ServiceUnavailable"

    def __init__(self, what: str, *, outcome_unknown: bool = False, **facts: str) -> None:
        super().__init__(what, **facts)
        self.outcome_unknown = outcome_unknown


REFUSALS = (BadRequest, Unauthorized, Forbidden, Invalid, TooLarge)
"""What the same request is answered again until something else changes, as a quota or a role."""

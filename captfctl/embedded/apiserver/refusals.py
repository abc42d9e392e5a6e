"""Refusals that are about the request itself, not about the object it names."""

from captfctl.cluster.errors import (
    ApiError,
    BadRequest,
    Cause,
    Invalid,
    Unauthorized,
    UnsupportedMediaType,
)


class NotAcceptable(ApiError):
    """No form of the answer that the client accepts can be made."""

    code = "NotAcceptable"
    status = 406
    reason = "NotAcceptable"


class UnfitPatch(Invalid):
    """A JSON patch that does not fit the object."""


class InvalidOptions(Invalid):
    """A query parameter or a field of the options is wrong. `kind`: `PatchOptions`, …"""

    GROUP = "meta.k8s.io"

    def __init__(self, kind: str, field: str, message: str, reason: str) -> None:
        super().__init__(f"{kind}: {field}: {message}", (Cause(field, message, reason),))
        self.kind = kind


ABOUT_THE_REQUEST = (
    BadRequest,
    InvalidOptions,
    NotAcceptable,
    Unauthorized,
    UnfitPatch,
    UnsupportedMediaType,
)

"""Refusals that are about the request itself, not about the object it names."""

from collections.abc import Sequence

from captfctl.cluster.errors import (
    ApiError,
    BadRequest,
    Cause,
    Invalid,
    Unauthorized,
    UnsupportedMediaType,
)
from captfctl.embedded.store.violations import VersionTooLarge, refuse


class NotAcceptable(ApiError):
    """No form of the answer that the client accepts can be made."""

    code = "NotAcceptable"
    status = 406
    reason = "NotAcceptable"


class UnfitPatch(Invalid):
    """A JSON patch that does not fit the object."""


class InvalidOptions(Invalid):
    """Query parameters or fields of the options are wrong. `kind`: `PatchOptions`, …"""

    GROUP = "meta.k8s.io"

    def __init__(self, kind: str, causes: Sequence[Cause]) -> None:
        super().__init__(refuse(kind, self.GROUP, "", causes).what, tuple(causes))
        self.kind = kind


ABOUT_THE_REQUEST = (
    BadRequest,
    InvalidOptions,
    NotAcceptable,
    Unauthorized,
    UnfitPatch,
    UnsupportedMediaType,
    VersionTooLarge,
)

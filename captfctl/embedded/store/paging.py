"""Continue tokens: where a list in pages goes on, and in which version of the collection."""

import base64
import binascii

import msgspec

from captfctl.cluster.errors import BadRequest


class Continuation(msgspec.Struct, rename={"version": "rv", "after": "start"}):
    """The next page starts after key `after`, in the collection as it was at `version`."""

    v: str
    version: int
    after: str


_FORM = "meta.k8s.io/v1"


def token(version: int, after: str) -> str:
    """The token of a page that follows the object at `after`."""
    body = msgspec.json.encode(Continuation(_FORM, version, after))
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def parse_token(text: str) -> Continuation:
    """Raises `BadRequest`."""
    try:
        body = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(body, type=Continuation)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        found = None
    if found is None or found.v != _FORM or found.version < 1:
        raise BadRequest("continue key is not valid", do="start the list again without it")
    return found

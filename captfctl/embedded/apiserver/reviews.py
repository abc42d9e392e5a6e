"""Questions about users and permissions, answered at once and never stored.

The server is one machine's own: a user with a valid token may do everything, and every access
review says so.
"""

from datetime import datetime
from typing import Any

import msgspec

from captfctl.cluster.errors import BadRequest, NotFound, Unauthorized
from captfctl.embedded.apiserver.auth import ISSUER, Authenticator, Identity, user_info
from captfctl.embedded.apiserver.discovery import REVIEWS
from captfctl.embedded.apiserver.replies import Reply, json_reply
from captfctl.embedded.apiserver.requests import ApiRequest, Target
from captfctl.embedded.store.objects import convert
from captfctl.model.resource import Document

REASON = "the embedded API server permits everything to its users"
ALL_RULES: Document = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


class _Spec(msgspec.Struct, rename="camel"):
    """Of a review's specification, what decides about the answer."""

    token: str | None = None
    audiences: list[str] | None = None


class _Review(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: _Spec | None = None


class Reviews:
    """Answers the reviews of users and permissions."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    @staticmethod
    def covers(target: Target) -> bool:
        """Whether the path names a review."""
        return target.version == "v1" and any(
            entry.plural == target.plural for entry in REVIEWS.get(target.group, ())
        )

    def answer(self, request: ApiRequest, target: Target, now: datetime) -> Reply:
        """The posted review with its status. Raises `BadRequest`, `NotFound`."""
        if request.method != "POST" or target.name:
            raise NotFound(f"{target.plural} can only be created")
        review = request.document()
        entry = next(e for e in REVIEWS[target.group] if e.plural == target.plural)
        if review.get("kind") not in (None, entry.kind):
            raise BadRequest(f"expected a {entry.kind}, got a {review['kind']}")
        spec = convert(review, _Review).spec or _Spec()
        status = self._status(target.plural, request.identity, spec, now)
        head = {"kind": entry.kind, "apiVersion": f"{target.group}/v1", "metadata": {}}
        return json_reply({**head, **review, "status": status}, 201)

    def _status(self, plural: str, user: Identity, spec: "_Spec", now: datetime) -> Document:
        match plural:
            case "selfsubjectreviews":
                return {"userInfo": user_info(user)}
            case "tokenreviews":
                return self._token(spec, now)
            case "selfsubjectrulesreviews":
                return ALL_RULES
        return {"allowed": True, "reason": REASON}

    def _token(self, spec: "_Spec", now: datetime) -> Document:
        try:
            identity = self._authenticator.identify(spec.token or "", now)
        except Unauthorized as error:
            return {"authenticated": False, "user": {}, "error": error.what}
        audiences = spec.audiences or [ISSUER]
        return {"authenticated": True, "user": user_info(identity), "audiences": audiences}

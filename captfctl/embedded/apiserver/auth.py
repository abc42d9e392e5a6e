"""Who makes a request: the owner of this machine, or a ServiceAccount with an issued token."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from captfctl.cluster.errors import Forbidden, Unauthorized
from captfctl.embedded.apiserver.files import read_private, write_private
from captfctl.model.resource import Document

ISSUER = "https://kubernetes.default.svc"
AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
_IMPERSONATE = "impersonate-"
_IMPERSONATED = {"user": "users", "group": "groups", "uid": "uids"}
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the API knows one."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def user_info(identity: Identity) -> Document:
    """A user as the API writes one."""
    info: Document = {"username": identity.name, "groups": list(identity.groups)}
    if identity.uid:
        info["uid"] = identity.uid
    if identity.extra:
        info["extra"] = {key: list(values) for key, values in identity.extra}
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountRef:
    """The ServiceAccount a token speaks for, and the object (a pod) it was made for, if any."""

    namespace: str
    name: str
    uid: str
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""

    def identity(self) -> Identity:
        """The user that the account is for the API."""
        extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if self.bound_kind == "Pod":
            prefix = "authentication.kubernetes.io"
            extra = (
                (f"{prefix}/pod-name", (self.bound_name,)),
                (f"{prefix}/pod-uid", (self.bound_uid,)),
            )
        return Identity(
            f"system:serviceaccount:{self.namespace}:{self.name}",
            self.uid,
            (
                "system:serviceaccounts",
                f"system:serviceaccounts:{self.namespace}",
                AUTHENTICATED,
            ),
            extra,
        )


def refuse_impersonation(headers: Mapping[str, str], identity: Identity) -> None:
    """Raises `Forbidden` for a request in somebody else's name.

    What that user may do is what such a request asks, and nothing here could tell.
    """
    found = next((name for name in headers if name.lower().startswith(_IMPERSONATE)), None)
    if found is None:
        return
    what = found.lower().removeprefix(_IMPERSONATE).partition("-")[0]
    resource = _IMPERSONATED.get(what, "userextras")
    raise Forbidden(
        f'{resource} "{headers[found]}" is forbidden: User "{identity.name}" cannot impersonate '
        f'resource "{resource}": the embedded API server permits everything to its users and does '
        "not know what others may do",
        do="ask without --as, --as-group and --as-uid",
    )


class Authenticator:
    """Knows the owner's token and the key that ServiceAccount tokens are signed with.

    Both are kept in the directory, mode 0600, so that they outlive a restart. A ServiceAccount's
    token is good until its expiry and while the very ServiceAccount exists: `account_uid` tells the
    uid of the one there is now, empty for none.
    """

    def __init__(
        self,
        directory: Path,
        owner: str,
        account_uid: Callable[[str, str], str],
    ) -> None:
        self.token = _kept(directory / "token", lambda: secrets.token_urlsafe(32)).decode()
        self._key = _kept(directory / "token-signing.key", lambda: secrets.token_hex(32))
        self._owner = Identity(owner, groups=(MASTERS, AUTHENTICATED))
        self._account_uid = account_uid

    def authenticate(self, authorization: str, now: datetime) -> Identity:
        """The user behind an Authorization header. Raises `Unauthorized`."""
        if authorization[: len(_BEARER)].lower() != _BEARER:
            raise Unauthorized(
                "the request carries no bearer token",
                do="use the kubeconfig that the embedded control plane wrote",
            )
        return self.identify(authorization[len(_BEARER) :].strip(), now)

    def identify(self, token: str, now: datetime) -> Identity:
        """The user behind a token. Raises `Unauthorized`."""
        if hmac.compare_digest(token.encode(), self.token.encode()):
            return self._owner
        account = self._verified(token, now)
        if account is None:
            raise Unauthorized(
                "the bearer token is unknown, expired or of a deleted ServiceAccount"
            )
        return account.identity()

    def issue(
        self, account: ServiceAccountRef, audiences: list[str], now: datetime, lifetime: int
    ) -> str:
        """A signed token (a JWT) that is good for `lifetime` seconds."""
        issued = int(now.timestamp())
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "sub": account.identity().name,
            "aud": audiences,
            "iat": issued,
            "nbf": issued,
            "exp": issued + lifetime,
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
            },
        }
        if account.bound_kind:
            bound = {"name": account.bound_name, "uid": account.bound_uid}
            claims["kubernetes.io"][account.bound_kind.lower()] = bound
        header = _segment(msgspec.json.encode({"alg": "HS256", "typ": "JWT"}))
        content = f"{header}.{_segment(msgspec.json.encode(claims))}"
        return f"{content}.{self._signature(content)}"

    def _signature(self, content: str) -> str:
        return _segment(hmac.new(self._key, content.encode(), hashlib.sha256).digest())

    def _verified(self, token: str, now: datetime) -> ServiceAccountRef | None:
        content, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(content).encode()):
            return None
        claims = msgspec.json.decode(_unsegment(content.partition(".")[2]))
        if claims["exp"] <= now.timestamp():
            return None
        own = claims["kubernetes.io"]
        pod = own.get("pod", {})
        account = ServiceAccountRef(
            namespace=own["namespace"],
            name=own["serviceaccount"]["name"],
            uid=own["serviceaccount"]["uid"],
            bound_kind="Pod" if pod else "",
            bound_name=pod.get("name", ""),
            bound_uid=pod.get("uid", ""),
        )
        exists = self._account_uid(account.namespace, account.name) == account.uid
        return account if exists else None


def _kept(path: Path, make: Callable[[], str]) -> bytes:
    """The file's content, written first when there is none."""
    content = (read_private(path) or b"").strip()
    if not content:
        content = make().encode()
        write_private(path, content + b"\n")
    return content


def _segment(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _unsegment(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

"""TokenRequest: tokens for ServiceAccounts, as a node's projected volumes need them."""

from datetime import UTC, datetime, timedelta

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.errors import BadRequest, Cause, Conflict, Invalid
from captfctl.embedded.apiserver.auth import ISSUER, Authenticator, ServiceAccountRef
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.store.objects import convert
from captfctl.model.core import Pod, ServiceAccount
from captfctl.model.resource import Document
from captfctl.model.resources import PODS, SERVICE_ACCOUNTS

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 1 << 32


class _Bound(msgspec.Struct, rename="camel", omit_defaults=True):
    kind: str | None = None
    api_version: str | None = None
    name: str | None = None
    uid: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _Bound | None = None


class _TokenRequest(msgspec.Struct):
    """Of a TokenRequest, what is asked for."""

    spec: _Spec | None = None


def serve_tokens(store: EmbeddedStore, authenticator: Authenticator, clock: Clock) -> None:
    """Let the store answer `serviceaccounts/NAME/token`, at every door to it."""

    def handle(name: str, namespace: str, body: Document) -> Document:
        return request_token(store, authenticator, clock.now(), name, namespace, body)

    store.serve_subresource(SERVICE_ACCOUNTS.plural, "token", handle)


def request_token(
    store: EmbeddedStore,
    authenticator: Authenticator,
    now: datetime,
    name: str,
    namespace: str,
    body: Document,
) -> Document:
    """The TokenRequest with its token. Raises `Invalid`, `NotFound`, `Conflict`, `BadRequest`."""
    spec = convert(body, _TokenRequest).spec or _Spec()
    seconds = spec.expiration_seconds or DEFAULT_SECONDS
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        message = f"must be from {SHORTEST_SECONDS} to {LONGEST_SECONDS} seconds"
        raise Invalid("TokenRequest", (Cause("spec.expirationSeconds", message),))
    audiences = spec.audiences or [ISSUER]
    account = _account(store, name, namespace)
    bound = spec.bound_object_ref
    if bound:
        account = _bind(store, account, bound)
    token = authenticator.issue(account, audiences, now, seconds)
    expiry = (now + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": msgspec.to_builtins(bound),
        },
        "status": {"token": token, "expirationTimestamp": expiry},
    }


def _account(store: EmbeddedStore, name: str, namespace: str) -> ServiceAccountRef:
    served = store.registry.find("", "v1", SERVICE_ACCOUNTS.plural)
    body = store.get(served, name, namespace)
    account: ServiceAccount = msgspec.json.decode(body, type=ServiceAccount)
    meta = account.metadata
    return ServiceAccountRef(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _bind(store: EmbeddedStore, account: ServiceAccountRef, bound: _Bound) -> ServiceAccountRef:
    """The account with the pod its token is for."""
    if bound.kind != PODS.kind:
        raise BadRequest(f"a token cannot be bound to a {bound.kind}, only to a Pod")
    served = store.registry.find("", "v1", PODS.plural)
    body = store.get(served, bound.name or "", account.namespace)
    pod: Pod = msgspec.json.decode(body, type=Pod)
    if bound.uid and bound.uid != pod.metadata.uid:
        raise Conflict(f"pod {pod.metadata.name} is another one: its uid is {pod.metadata.uid}")
    if (pod.spec.service_account_name or "default") != account.name:
        raise BadRequest(f"pod {pod.metadata.name} does not run as ServiceAccount {account.name}")
    return ServiceAccountRef(
        namespace=account.namespace,
        name=account.name,
        uid=account.uid,
        bound_kind=PODS.kind,
        bound_name=pod.metadata.name,
        bound_uid=pod.metadata.uid,
    )

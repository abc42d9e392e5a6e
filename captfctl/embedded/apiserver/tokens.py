"""TokenRequest: tokens for ServiceAccounts, as a node's projected volumes need them."""

from datetime import UTC, datetime, timedelta

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.errors import BadRequest, Cause, Conflict, Invalid
from captfctl.embedded.apiserver.auth import ISSUER, Authenticator, ServiceAccountRef
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import Pod, ServiceAccount
from captfctl.model.resource import Document
from captfctl.model.resources import PODS, SERVICE_ACCOUNTS

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600


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
    spec: Document = body.get("spec") or {}
    seconds = spec.get("expirationSeconds") or DEFAULT_SECONDS
    if not isinstance(seconds, int) or seconds < SHORTEST_SECONDS:
        message = f"must be a number of seconds, at least {SHORTEST_SECONDS}"
        raise Invalid("TokenRequest", (Cause("spec.expirationSeconds", message),))
    audiences = spec.get("audiences") or [ISSUER]
    account = _account(store, name, namespace)
    bound = spec.get("boundObjectRef")
    if bound:
        account = _bind(store, account, bound)
    token = authenticator.issue(account, audiences, now, seconds)
    expiry = (now + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": expiry},
    }


def _account(store: EmbeddedStore, name: str, namespace: str) -> ServiceAccountRef:
    served = store.registry.find("", "v1", SERVICE_ACCOUNTS.plural)
    body = store.get(served, name, namespace)
    account: ServiceAccount = msgspec.json.decode(body, type=ServiceAccount)
    meta = account.metadata
    return ServiceAccountRef(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _bind(store: EmbeddedStore, account: ServiceAccountRef, bound: Document) -> ServiceAccountRef:
    """The account with the pod its token is for."""
    if bound.get("kind") != PODS.kind:
        raise BadRequest(f"a token cannot be bound to a {bound.get('kind')}, only to a Pod")
    served = store.registry.find("", "v1", PODS.plural)
    body = store.get(served, bound.get("name", ""), account.namespace)
    pod: Pod = msgspec.json.decode(body, type=Pod)
    uid = bound.get("uid")
    if uid and uid != pod.metadata.uid:
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

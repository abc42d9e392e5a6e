"""The door to a real Kubernetes API server, over HTTP."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Page, Propagation
from captfctl.cluster.errors import ApiError, BadRequest
from captfctl.cluster.live_access import Access, kubeconfig_access
from captfctl.cluster.live_requests import Limits, Requests
from captfctl.cluster.live_watch import LiveWatch
from captfctl.model import keys
from captfctl.model.meta import ApiObject
from captfctl.model.resource import Resource

T = TypeVar("T")
U = TypeVar("U")

MERGE_PATCH = "application/merge-patch+json"
PARTIAL = "application/json;as={};g=meta.k8s.io;v=v1,application/json"


class ListMeta(msgspec.Struct, rename="camel", kw_only=True):
    """The metadata of a list."""

    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class ListOf(msgspec.Struct, Generic[T], kw_only=True):
    """A list as it is sent; `items` is null when an old server has nothing."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] | None = None


@cache
def _list_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(ListOf[kind])


class LiveDoor:
    """A `Door` over HTTP. Safe for any number of threads.

    Configuration, authentication and TLS are the `kubernetes` library's; bodies are decoded once,
    straight into our types. Writes name `field_owner` as their field manager.
    """

    def __init__(self, requests: Requests, *, field_owner: str = keys.COMMANDS) -> None:
        self._requests = requests
        self._owner = {"fieldManager": field_owner}

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        context: str | None = None,
        *,
        field_owner: str = keys.COMMANDS,
        pool_size: int = 32,
        limits: Limits | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
    ) -> "LiveDoor":
        """From a kubeconfig file (None: `$KUBECONFIG`, `~/.kube/config`, then in-cluster).

        `pool_size`: connections kept open, as many as threads that send requests. Raises
        `InputError` when the file is missing, unreadable, or names what it does not define. No
        request is sent: that the server can be reached shows with the first one.
        """
        file = None if path is None else os.fspath(path)
        access = kubeconfig_access(file, context, environ, pool_size)
        return cls.over(access, field_owner=field_owner, limits=limits, clock=clock)

    @classmethod
    def over(
        cls,
        access: Access,
        *,
        field_owner: str = keys.COMMANDS,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> "LiveDoor":
        """Over an access that exists already; several doors may share one."""
        requests = Requests(access, limits or Limits(), clock or SystemClock())
        return cls(requests, field_owner=field_owner)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._requests.server

    @property
    def who(self) -> str:
        """The user we act as, as the configuration names it."""
        return self._requests.who

    def close(self) -> None:
        """Close the idle connections."""
        self._requests.close()

    def abandon(self) -> None:
        """End requests that wait for an answer now, and refuse all that follow: for a process that
        has to end while the server does not answer."""
        self._requests.abandon()

    def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        path = _path(resource, namespace, name)
        return self._object(resource, "GET", path)

    def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page[T]:
        path = resource.path(namespace)
        query = _given(
            labelSelector=labels,
            fieldSelector=fields,
            limit=str(limit or ""),
            resourceVersion=resource_version,
            **{"continue": continue_token},
        )
        accept = _accept(resource, "PartialObjectMetadataList")
        body = self._requests.send("GET", path, query, accept=accept)
        found: ListOf[T] = _decoded(
            _list_decoder(cast(Any, resource.type)).decode, body, f"GET {path}"
        )
        items = found.items or []
        for item in items:
            _name_kind(resource, item)
        meta = found.metadata
        return Page(items, meta.resource_version, meta.continue_token, meta.remaining_item_count)

    def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_seconds: int = 0,
    ) -> LiveWatch[T]:
        path = resource.path(namespace)
        query = _given(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds or ""),
        )
        accept = _accept(resource, "PartialObjectMetadata")
        response = self._requests.stream(path, query, accept=accept)

        def decode(body: bytes) -> T:
            return _name_kind(resource, resource.decode(body))

        request = self._requests.request("WATCH", path)
        watch = LiveWatch(response, request, decode, self._requests.now)
        self._requests.follow(watch)
        return watch

    def create(self, resource: Resource[T], obj: T, namespace: str = "") -> T:
        path = resource.path(namespace or _meta(obj)[0])
        body = resource.encode(_with_kind(resource, obj))
        return self._object(resource, "POST", path, self._owner, body=body)

    def create_subresource(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        subresource: str,
        body: U,
        answer: type[U],
    ) -> U:
        path = _path(resource, namespace, name, subresource)
        sent = self._requests.send("POST", path, self._owner, body=msgspec.json.encode(body))
        return _decoded(lambda data: msgspec.json.decode(data, type=answer), sent, f"POST {path}")

    def update(self, resource: Resource[T], obj: T, *, subresource: str = "") -> T:
        path = _path(resource, *_meta(obj), subresource)
        body = resource.encode(_with_kind(resource, obj))
        return self._object(resource, "PUT", path, self._owner, body=body)

    def patch(
        self,
        resource: Resource[T],
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
        subresource: str = "",
    ) -> T:
        if resource_version:
            metadata = {**patch.get("metadata", {}), "resourceVersion": resource_version}
            patch = {**patch, "metadata": metadata}
        path = _path(resource, namespace, name, subresource)
        body = msgspec.json.encode(patch)
        return self._object(
            resource, "PATCH", path, self._owner, body=body, content_type=MERGE_PATCH
        )

    def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period_seconds: int | None = None,
    ) -> None:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions := _given(uid=uid, resourceVersion=resource_version):
            options["preconditions"] = preconditions
        if propagation is not None:
            options["propagationPolicy"] = propagation.value
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        path = _path(resource, namespace, name)
        self._requests.send("DELETE", path, body=msgspec.json.encode(options))

    def _object(
        self,
        resource: Resource[T],
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> T:
        accept = _accept(resource, "PartialObjectMetadata")
        answer = self._requests.send(
            method, path, query, body=body, content_type=content_type, accept=accept
        )
        return _name_kind(resource, _decoded(resource.decode, answer, f"{method} {path}"))


def _given(**parameters: str) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


def _path(resource: Resource[T], namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object. A name that would make it another path is refused here."""
    if not name or name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f'"{name}" cannot be the name of one of {resource.name}')
    if resource.namespaced and not namespace:
        raise BadRequest(f'{resource.name} "{name}": the namespace is missing')
    return resource.path(namespace, name, subresource)


def _accept(resource: Resource[T], partial: str) -> str:
    return PARTIAL.format(partial) if resource.partial else "application/json"


def _decoded(decode: Callable[[bytes], U], body: bytes, request: str) -> U:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Only the place and the types are named: values may be secret.
        raise ApiError(f"{request}: the answer cannot be read", why=str(error)) from error


def _meta(obj: Any) -> tuple[str, str]:
    """Namespace and name."""
    if isinstance(obj, ApiObject):
        return obj.key
    metadata = obj.get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _with_kind(resource: Resource[T], obj: T) -> T:
    """A copy of the object that names its apiVersion and kind, which servers ask for."""
    named: Any = obj
    if isinstance(named, ApiObject):
        named = msgspec.structs.replace(
            named,
            kind=named.kind or resource.kind,
            api_version=named.api_version or resource.api_version,
        )
    else:
        named = {"apiVersion": resource.api_version, "kind": resource.kind, **named}
    return cast(T, named)


def _name_kind(resource: Resource[T], obj: T) -> T:
    """Fill in what lists of built-in kinds leave out, and the true kind of metadata alone."""
    named: Any = obj
    if isinstance(named, ApiObject):
        if not named.kind or resource.partial:
            named.kind, named.api_version = resource.kind, resource.api_version
    else:
        named.setdefault("apiVersion", resource.api_version)
        named.setdefault("kind", resource.kind)
    return obj

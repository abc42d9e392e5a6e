"""A door over a dictionary: just enough of the API for tests that need no store."""

import itertools
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Page, Propagation
from captfctl.cluster.errors import AlreadyExists, Conflict, NotFound
from captfctl.model.meta import whole_seconds
from captfctl.model.resource import Resource

Key = tuple[str, str, str]


class FakeDoor:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[Key, dict[str, Any]] = {}
        self._versions = itertools.count(1)

    def _key(self, resource: Resource[Any], name: str, namespace: str) -> Key:
        return resource.name, namespace if resource.namespaced else "", name

    def _out(self, resource: Resource[Any], doc: dict[str, Any]) -> Any:
        return resource.decode(msgspec.json.encode(doc))

    def _find(self, resource: Resource[Any], name: str, namespace: str) -> dict[str, Any]:
        try:
            return self._objects[self._key(resource, name, namespace)]
        except KeyError:
            raise NotFound(f"{resource.name} {namespace}/{name} not found") from None

    def get(self, resource, name, namespace=""):
        return self._out(resource, self._find(resource, name, namespace))

    def list(self, resource, namespace="", *, labels="", **_: Any):
        found = [
            doc
            for key, doc in sorted(self._objects.items())
            if key[0] == resource.name
            and (not namespace or key[1] == namespace)
            and _matches(doc["metadata"].get("labels", {}), labels)
        ]
        return Page([self._out(resource, doc) for doc in found], "0")

    def create(self, resource, obj, namespace=""):
        doc = msgspec.json.decode(resource.encode(obj))
        meta = doc["metadata"]
        key = self._key(resource, meta["name"], meta.get("namespace") or namespace)
        if key in self._objects:
            raise AlreadyExists(f"{resource.name} {key[1]}/{key[2]} exists")
        if key[1]:
            meta["namespace"] = key[1]
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", whole_seconds(self._clock.now()).isoformat())
        self._objects[key] = doc
        return self._stamped(resource, doc)

    def _stamped(self, resource: Resource[Any], doc: dict[str, Any]) -> Any:
        doc["metadata"]["resourceVersion"] = str(next(self._versions))
        return self._out(resource, doc)

    def update(self, resource, obj, *, subresource=""):
        doc = msgspec.json.decode(resource.encode(obj))
        meta = doc["metadata"]
        key = self._key(resource, meta["name"], meta.get("namespace", ""))
        old = self._find(resource, meta["name"], meta.get("namespace", ""))
        self._check(old, meta.get("resourceVersion", ""))
        meta["uid"] = old["metadata"]["uid"]
        meta.setdefault("creationTimestamp", old["metadata"]["creationTimestamp"])
        self._objects[key] = doc
        return self._stamped(resource, doc)

    def _check(self, doc: dict[str, Any], resource_version: str) -> None:
        if resource_version and doc["metadata"]["resourceVersion"] != resource_version:
            raise Conflict("stale resourceVersion")

    def patch(self, resource, name, namespace, patch, *, resource_version="", subresource=""):
        doc = self._find(resource, name, namespace)
        self._check(doc, resource_version)
        _merge(doc, msgspec.json.decode(msgspec.json.encode(patch)))
        meta = doc["metadata"]
        answer = self._stamped(resource, doc)
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            del self._objects[self._key(resource, name, namespace)]
        return answer

    def delete(
        self,
        resource,
        name,
        namespace="",
        *,
        uid="",
        resource_version="",
        propagation: Propagation | None = None,
        grace_period_seconds=None,
    ):
        doc = self._find(resource, name, namespace)
        meta = doc["metadata"]
        if uid and meta["uid"] != uid:
            raise Conflict("another UID")
        self._check(doc, resource_version)
        if meta.get("finalizers"):
            meta["deletionTimestamp"] = whole_seconds(self._clock.now()).isoformat()
            self._stamped(resource, doc)
            return
        del self._objects[self._key(resource, name, namespace)]


def _matches(labels: Mapping[str, str], selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    return True


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, Mapping):
            inner = target.setdefault(key, {})
            _merge(inner, value)
        else:
            target[key] = value

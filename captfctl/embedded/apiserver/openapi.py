"""OpenAPI v3 documents, one for each group version.

`kubectl explain` reads the schemas, `kubectl apply` the merge keys, and kubectl as a whole whether
the server validates fields. OpenAPI v2 is not offered: kubectl asks for it only when v3 is missing.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from captfctl.embedded.apiserver import builtin
from captfctl.embedded.apiserver.replies import Reply, json_reply
from captfctl.embedded.apiserver.types import EMBEDDED, PRESERVE
from captfctl.embedded.store import Registry, Served
from captfctl.model.resource import Document
from captfctl.version import VERSION

_PREFIX = "#/components/schemas/"
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"


class OpenApi:
    """The documents, made when first asked for after the served resources changed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._version = -1
        self._documents: dict[str, bytes] = {}

    def answer(self, path: str) -> Reply | None:
        """The index, or a group version's document; None when there is none."""
        self._refresh()
        rest = path.removeprefix("/openapi/v3").strip("/")
        if not rest:
            return json_reply({"paths": {key: self._link(key) for key in self._paths()}})
        if rest not in self._paths():
            return None
        if rest not in self._documents:
            self._documents[rest] = self._document(rest)
        return Reply(self._documents[rest])

    def _refresh(self) -> None:
        if self._version != self._registry.version:
            self._version, self._documents = self._registry.version, {}

    def _paths(self) -> list[str]:
        """Where the group versions live: `api/v1`, `apis/batch/v1`."""
        found = {_base(served): None for served in self._registry}
        return list(found)

    def _link(self, path: str) -> Document:
        mark = hashlib.sha256(f"{VERSION} {self._version} {path}".encode()).hexdigest()[:32]
        return {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark}"}

    def _document(self, path: str) -> bytes:
        members = [served for served in self._registry if _base(served) == path]
        schemas: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for served in members:
            name = _add_schema(served, schemas)
            paths |= _operations(served, name)
        document = {
            "openapi": "3.0.0",
            "info": {"title": "captfctl local", "version": VERSION},
            "paths": paths,
            "components": {"schemas": schemas},
        }
        return msgspec.json.encode(document)


def _base(served: Served) -> str:
    resource = served.resource
    group = resource.group
    return f"apis/{group}/{resource.version}" if group else f"api/{resource.version}"


def _gvk(served: Served) -> dict[str, str]:
    resource = served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _add_schema(served: Served, schemas: dict[str, Any]) -> str:
    """Put a kind's schema, and all that it refers to, among the document's; answer its name."""
    resource = served.resource
    name = builtin.schema_name(resource.group, resource.version, resource.kind)
    if name:
        _add_builtin([name], schemas)
        return name
    name = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    schemas[name] = _custom(served)
    _add_builtin([builtin.OBJECT_META], schemas)
    return name


def _add_builtin(names: Iterable[str], schemas: dict[str, Any]) -> None:
    for name in names:
        if name not in schemas:
            schemas[name] = _published(builtin.schemas()[name])
            _add_builtin(_references(builtin.schemas()[name]), schemas)


def _references(schema: Document) -> set[str]:
    found: set[str] = set()
    for part in _parts(schema):
        if isinstance(part.get("$ref"), str):
            found.add(part["$ref"])
        found |= _references(part)
    return found


def _parts(schema: Document) -> list[Document]:
    parts = list(schema.get("properties", {}).values())
    parts += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return [part for part in parts if isinstance(part, dict)]


def _published(schema: Document) -> Document:
    """A schema with its references as OpenAPI writes them."""
    result = dict(schema)
    ref = result.pop("$ref", None)
    if ref is not None:
        link = {"$ref": _PREFIX + ref}
        return {**result, "allOf": [link]} if result else link
    if "properties" in result:
        result["properties"] = {k: _published(v) for k, v in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _published(result[key])
    return result


def _custom(served: Served) -> Document:
    own = served.schema or {"type": "object", PRESERVE: True}
    common = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": _PREFIX + builtin.OBJECT_META}]},
    }
    return {
        **{key: value for key, value in own.items() if key != EMBEDDED},
        "type": "object",
        "properties": {**own.get("properties", {}), **common},
        "x-kubernetes-group-version-kind": [_gvk(served)],
    }


def _operations(served: Served, name: str) -> dict[str, Any]:
    """The paths of a resource with the operations on each, as far as clients look at them."""
    resource = served.resource
    namespace = "{namespace}" if resource.namespaced else ""
    body = {"application/json": {"schema": {"$ref": _PREFIX + name}}}
    patches = _PATCHES if served.custom else (*_PATCHES, _STRATEGIC)
    collection = {
        "get": _operation(served, "list", ("limit", "continue", "labelSelector", "fieldSelector")),
        "post": _operation(served, "post", _WRITE, body),
        "delete": _operation(served, "deletecollection", ("dryRun", "propagationPolicy")),
    }
    patch_body: Document = {media: {"schema": {"type": "object"}} for media in patches}
    item = {
        "get": _operation(served, "get", ()),
        "put": _operation(served, "put", _WRITE, body),
        "patch": _operation(served, "patch", (*_WRITE, "force"), patch_body),
        "delete": _operation(served, "delete", ("dryRun", "propagationPolicy")),
    }
    return {
        resource.path(namespace): collection,
        resource.path(namespace, "{name}"): item,
    }


def _operation(
    served: Served, action: str, parameters: tuple[str, ...], body: Document | None = None
) -> Document:
    operation: Document = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(served),
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters
        ],
        "responses": {"200": {"description": "OK"}},
    }
    if body:
        operation["requestBody"] = {"content": body}
    return operation

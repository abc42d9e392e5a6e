"""OpenAPI documents: v3, one for each group version, and v2, one for everything.

`kubectl explain` reads the schemas, `kubectl apply` the merge keys, and kubectl as a whole whether
the server validates fields.
"""

import hashlib
from typing import Any

import msgspec

from captfctl.embedded.apiserver import openapi_v2
from captfctl.embedded.apiserver.replies import JSON, Reply, json_reply
from captfctl.embedded.schemas import builtin
from captfctl.embedded.schemas.builtin import META, Field, Form, Scalar, Shape, Struct
from captfctl.embedded.store import Registry, Served
from captfctl.model.resource import Document
from captfctl.version import VERSION

V2 = "/openapi/v2"
V3 = "/openapi/v3"
_PREFIX = "#/components/schemas/"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
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

    def answer(self, path: str, media: str) -> Reply | None:
        """The v2 document, the v3 index, or a group version's document; None for anything else.

        `media`: the content type of the v2 document.
        """
        self._refresh()
        if path == V2:
            return self._v2(media)
        rest = path.removeprefix(V3).strip("/")
        if not rest:
            return json_reply({"paths": {key: self._link(key) for key in self._paths()}})
        if rest not in self._paths():
            return None
        if rest not in self._documents:
            self._documents[rest] = msgspec.json.encode(self._document(rest))
        return Reply(self._documents[rest])

    def _v2(self, media: str) -> Reply:
        protobuf = media == openapi_v2.PROTOBUF
        if media not in self._documents:
            document = openapi_v2.swagger(self._document(path) for path in self._paths())
            body = openapi_v2.encoded(document) if protobuf else msgspec.json.encode(document)
            self._documents[media] = body
        return Reply(self._documents[media], content_type=openapi_v2.ANSWERED if protobuf else JSON)

    def _refresh(self) -> None:
        if self._version != self._registry.version:
            self._version, self._documents = self._registry.version, {}

    def _paths(self) -> list[str]:
        """Where the group versions live: `api/v1`, `apis/batch/v1`."""
        found = {_base(served): None for served in self._registry}
        return list(found)

    def _link(self, path: str) -> Document:
        mark = hashlib.sha256(f"{VERSION} {self._version} {path}".encode()).hexdigest()[:32]
        return {"serverRelativeURL": f"{V3}/{path}?hash={mark}"}

    def _document(self, path: str) -> Document:
        members = [served for served in self._registry if _base(served) == path]
        schemas: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for served in members:
            name = _add_schema(served, schemas)
            paths |= _operations(served, name)
        return {
            "openapi": "3.0.0",
            "info": {"title": "captfctl local", "version": VERSION},
            "paths": paths,
            "components": {"schemas": schemas},
        }


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
    name = builtin.name_of(resource.group, resource.version, resource.kind)
    if name:
        _add_builtin(name, schemas)
        return name
    name = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    schemas[name] = _custom(served)
    _add_builtin(builtin.OBJECT_META, schemas)
    return name


def _add_builtin(name: str, schemas: dict[str, Any]) -> None:
    if name in schemas:
        return
    struct = builtin.struct(name)
    schemas[name] = _struct(struct)
    for field in struct.fields.values():
        shape = field.shape
        while shape.item is not None:
            shape = shape.item
        if shape.form is Form.STRUCT:
            _add_builtin(shape.name, schemas)
        elif shape.name in _NAMED:
            component, schema = _NAMED[shape.name]
            schemas[component] = schema


def _struct(struct: Struct) -> Document:
    schema: Document = {"type": "object"}
    if struct.kind:
        gvk = dict(zip(("group", "version", "kind"), struct.kind, strict=True))
        schema["x-kubernetes-group-version-kind"] = [gvk]
    if struct.required:
        schema["required"] = struct.required
    if struct.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if struct.fields:
        schema["properties"] = {name: _field(field) for name, field in struct.fields.items()}
    return schema


def _field(field: Field) -> Document:
    facts = {
        "x-kubernetes-list-type": field.list,
        "x-kubernetes-list-map-keys": list(field.keys),
        "x-kubernetes-map-type": "atomic" if field.atomic else "",
        "x-kubernetes-patch-merge-key": field.merge_key,
        "x-kubernetes-patch-strategy": field.strategy,
        "default": field.default,
    }
    return _shape(field.shape) | {keyword: value for keyword, value in facts.items() if value}


def _shape(shape: Shape) -> Document:
    match shape.form, shape.item:
        case Form.LIST, Shape() as item:
            return {"type": "array", "items": _shape(item)}
        case Form.MAP, Shape() as item:
            return {"type": "object", "additionalProperties": _shape(item)}
        case Form.STRUCT, _:
            return {"$ref": _PREFIX + shape.name}
    if shape.name in _NAMED:
        return {"$ref": _PREFIX + _NAMED[shape.name][0]}
    return dict(_PLAIN.get(shape.name, {}))


_PLAIN: dict[str, Document] = {
    Scalar.STRING: {"type": "string"},
    Scalar.BOOL: {"type": "boolean"},
    Scalar.INT32: {"type": "integer", "format": "int32"},
    Scalar.INT64: {"type": "integer", "format": "int64"},
    Scalar.DOUBLE: {"type": "number", "format": "double"},
    Scalar.BYTES: {"type": "string", "format": "byte"},
    Scalar.STRINGS: {"type": "array", "items": {"type": "string"}},
}
_NAMED: dict[str, tuple[str, Document]] = {
    Scalar.TIME: (f"{META}.Time", {"type": "string", "format": "date-time"}),
    Scalar.MICRO_TIME: (f"{META}.MicroTime", {"type": "string", "format": "date-time"}),
    Scalar.FIELDS: (f"{META}.FieldsV1", {"type": "object"}),
    Scalar.JSON: (f"{_EXTENSIONS}.JSON", {}),
    Scalar.SCHEMA_OR_ARRAY: (f"{_EXTENSIONS}.JSONSchemaPropsOrArray", {}),
    Scalar.SCHEMA_OR_BOOL: (f"{_EXTENSIONS}.JSONSchemaPropsOrBool", {}),
    Scalar.SCHEMA_OR_STRINGS: (f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray", {}),
    Scalar.QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    Scalar.INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
}
"""Types without fields that have a schema of their own in Kubernetes' documents."""


def _custom(served: Served) -> Document:
    own = served.published or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    common = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": _PREFIX + builtin.OBJECT_META}]},
    }
    return {
        **{k: value for k, value in own.items() if k != "x-kubernetes-embedded-resource"},
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

"""Structural schemas of CustomResourceDefinitions, made from the structs of the model.

A field's constraints are written once, beside the field: `Annotated[str, rule(maxLength=253)]`.
They end up in the schema and nowhere in decoding, so that an object stored under older rules can
still be read. A struct's own rules (CEL, minimum number of properties) are its `SCHEMA`; its
docstring and the ones below its fields are the descriptions that `kubectl explain` shows.
"""

import ast
import inspect
import sys
from functools import cache
from typing import Annotated, Any

import msgspec
import msgspec.inspect as mi

Schema = dict[str, Any]


def rule(**constraints: Any) -> msgspec.Meta:
    """Schema keywords for a field, in the schema's spelling (`minLength`, `pattern`, `enum`)."""
    return msgspec.Meta(extra_json_schema=constraints)


SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

Name = Annotated[str, rule(minLength=1, maxLength=253)]
Subdomain = Annotated[str, rule(minLength=1, maxLength=253, pattern=SUBDOMAIN)]
Namespace = Annotated[str, rule(minLength=1, maxLength=63, pattern=DNS_LABEL)]

NOT_EMPTY: Schema = {"minProperties": 1}
ATOMIC: Schema = {"x-kubernetes-list-type": "atomic"}
SET: Schema = {"x-kubernetes-list-type": "set"}


def map_by(key: str) -> Schema:
    """A list whose items are told apart by a field of theirs."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def cel(expression: str, message: str, path: str = "") -> Schema:
    """One entry of `x-kubernetes-validations`."""
    entry = {"rule": expression, "message": message}
    return entry | {"fieldPath": path} if path else entry


def schema_of(kind: type[msgspec.Struct]) -> Schema:
    """The structural schema of a struct: an object with its fields, without references."""
    info = mi.type_info(kind)
    assert isinstance(info, mi.StructType)
    return _struct(info)


def _struct(info: mi.StructType) -> Schema:
    properties = {field.encode_name: _field(info.cls, field) for field in info.fields}
    required = [field.encode_name for field in info.fields if field.required]
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    described = _description(info.cls)
    if described:
        schema["description"] = described
    own: Schema = getattr(info.cls, "SCHEMA", {})
    return schema | own


def _field(cls: type, field: mi.Field) -> Schema:
    described = _field_docs(cls).get(field.name)
    schema = _type(field.type)
    return {**schema, "description": described} if described else schema


def _description(cls: type) -> str:
    """The struct's own docstring, not an inherited one."""
    return _one_line(cls.__dict__.get("__doc__") or "")


def _one_line(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split())


def _field_docs(cls: type) -> dict[str, str]:
    """The docstrings below the fields of a struct and of those it inherits from."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        docs |= _module_docs(base.__module__).get(base.__qualname__, {})
    return docs


@cache
def _module_docs(name: str) -> dict[str, dict[str, str]]:
    """Python does not keep these docstrings, so they are read from the source."""
    if not name.startswith("captfctl."):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: _class_docs(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class_docs(node: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for before, after in zip(node.body, node.body[1:], strict=False):
        match before, after:
            case (
                ast.AnnAssign(target=ast.Name(id=field)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[field] = _one_line(text)
    return docs


def _type(info: mi.Type) -> Schema:
    if isinstance(info, mi.Metadata):
        return _merged(_type(info.type), info.extra_json_schema or {})
    match info:
        case mi.UnionType(types=types):
            some = [t for t in types if not isinstance(t, mi.NoneType)]
            if {type(t) for t in some} == {mi.IntType, mi.StrType}:
                return {"x-kubernetes-int-or-string": True}
            (only,) = some
            return _type(only)
        case mi.StrType():
            return {"type": "string"}
        case mi.BytesType():
            return {"type": "string", "format": "byte"}
        case mi.BoolType():
            return {"type": "boolean"}
        case mi.IntType():
            return {"type": "integer", "format": "int64"}
        case mi.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case mi.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case mi.ListType(item_type=item):
            return {"type": "array", "items": _type(item)}
        case mi.DictType(value_type=mi.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case mi.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _type(value)}
        case mi.RawType() | mi.AnyType():
            return {"x-kubernetes-preserve-unknown-fields": True}
        case mi.StructType():
            return _struct(info)
    raise TypeError(f"no schema for {info!r}")


def _merged(schema: Schema, extra: Schema) -> Schema:
    """Constraints named `items` go to the list's items, everything else to the field itself."""
    items = extra.get("items")
    merged = schema | {key: value for key, value in extra.items() if key != "items"}
    if items is not None:
        merged["items"] = merged["items"] | items
    return merged

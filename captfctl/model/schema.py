"""Structural schemas of CustomResourceDefinitions, made from the structs of the model.

A field's constraints are written once, beside the field: `Annotated[str, rule(maxLength=253)]`.
They end up in the schema and nowhere in decoding, so that an object stored under older rules can
still be read. A struct's own rules (CEL, minimum number of properties) are its `SCHEMA`; its
docstring is the description that `kubectl explain` shows.
"""

import inspect
import re
from typing import Any

import msgspec
import msgspec.inspect as mi

Schema = dict[str, Any]

_SPEC_REFERENCE = re.compile(r"\s*\([^()]*§[^()]*\)")


def rule(**constraints: Any) -> msgspec.Meta:
    """Schema keywords for a field, in the schema's own spelling (`minLength`, `pattern`, `enum`).

    Two underscores stand for the dashes of `x-kubernetes-…`: `x__kubernetes__map__type`.
    """
    return msgspec.Meta(
        extra_json_schema={key.replace("__", "-"): value for key, value in constraints.items()}
    )


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
    properties = {field.encode_name: _type(field.type) for field in info.fields}
    required = [field.encode_name for field in info.fields if field.required]
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    described = _description(info.cls)
    if described:
        schema["description"] = described
    own: Schema = getattr(info.cls, "SCHEMA", {})
    return schema | own


def _description(cls: type) -> str:
    """The struct's own docstring in one line, without references to the specification."""
    own = cls.__dict__.get("__doc__")
    return " ".join(_SPEC_REFERENCE.sub("", inspect.cleandoc(own)).split()) if own else ""


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

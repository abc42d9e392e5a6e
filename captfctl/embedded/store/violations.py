"""Refusals in the form the real server gives them: what people and scripts know from kubectl."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from captfctl.cluster.errors import (
    AlreadyExists,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
)


def shown(value: object) -> str:
    """A value as it appears in a refusal."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def type_name(value: object) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, _with("Required value", detail), "FieldValueRequired")


def invalid(field: str, value: object, detail: str) -> Cause:
    return Cause(field, _with(f"Invalid value: {shown(value)}", detail), "FieldValueInvalid")


def wrong_type(field: str, value: object, wanted: str) -> Cause:
    found = type_name(value)
    detail = f'{field} in body must be of type {wanted}: "{found}"'
    return Cause(field, f'Invalid value: "{found}": {detail}', "FieldValueTypeInvalid")


def immutable(field: str, value: object) -> Cause:
    return invalid(field, value, "field is immutable")


def forbidden(field: str, detail: str) -> Cause:
    return Cause(field, _with("Forbidden", detail), "FieldValueForbidden")


def duplicate(field: str, value: object) -> Cause:
    return Cause(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def unsupported(field: str, value: object, options: Iterable[object]) -> Cause:
    listed = ", ".join(shown(option) for option in options)
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause(field, message, "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    return Cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(field: str, count: int, limit: int) -> Cause:
    message = f"Too many: {count}: must have at most {limit} items"
    return Cause(field, message, "FieldValueTooMany")


def _with(kind: str, detail: str) -> str:
    return f"{kind}: {detail}" if detail else kind


def qualified(kind: str, group: str) -> str:
    return f"{kind}.{group}" if group else kind


def refuse(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Invalid:
    """The `Invalid` that lists every violation."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f'{qualified(kind, group)} "{name}" is invalid: {listed}', tuple(causes))


def not_found(resource: str, name: str) -> NotFound:
    return NotFound(f'{resource} "{name}" not found')


def not_served() -> NotFound:
    return NotFound("the server could not find the requested resource")


def already_exists(resource: str, name: str) -> AlreadyExists:
    return AlreadyExists(f'{resource} "{name}" already exists')


def conflict(resource: str, name: str, reason: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {reason}')


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def refused(resource: str, name: str, reason: str) -> Forbidden:
    return Forbidden(f'{resource} "{name}" is forbidden: {reason}')


def too_old(version: int, oldest: int) -> Gone:
    return Gone(f"too old resource version: {version} ({oldest})")


def child(path: str, key: Any) -> str:
    """The path of a property or, for an integer, of a list's item."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)


def keyed(path: str, key: str) -> str:
    """The path of a map's entry."""
    return f"{path}[{key}]"

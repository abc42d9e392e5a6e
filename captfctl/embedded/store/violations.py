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
    NamespaceTerminating,
    NotFound,
    Unavailable,
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
    """A field that must be set is not."""
    return Cause(field, _with("Required value", detail), "FieldValueRequired")


def invalid(field: str, value: object, detail: str) -> Cause:
    """A field has a value that it may not have."""
    return Cause(field, _with(f"Invalid value: {shown(value)}", detail), "FieldValueInvalid")


def wrong_type(field: str, value: object, wanted: str) -> Cause:
    """A field has another JSON type than its own."""
    found = type_name(value)
    detail = f'{field} in body must be of type {wanted}: "{found}"'
    return Cause(field, f'Invalid value: "{found}": {detail}', "FieldValueTypeInvalid")


def immutable(field: str, value: object) -> Cause:
    """A field was changed that may not be."""
    return invalid(field, value, "field is immutable")


def forbidden(field: str, detail: str) -> Cause:
    """A field may not be set here."""
    return Cause(field, _with("Forbidden", detail), "FieldValueForbidden")


def duplicate(field: str, value: object) -> Cause:
    """A value that must be unique is there twice."""
    return Cause(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def unsupported(field: str, value: object, options: Iterable[object]) -> Cause:
    """A value is none of the options."""
    listed = ", ".join(shown(option) for option in options)
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause(field, message, "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    """A text has more bytes than it may have."""
    return Cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list or map has more items than it may have."""
    message = f"Too many: {count}: must have at most {limit} items"
    return Cause(field, message, "FieldValueTooMany")


def _with(kind: str, detail: str) -> str:
    return f"{kind}: {detail}" if detail else kind


def qualified(kind: str, group: str) -> str:
    """A kind with its group, as error messages name it."""
    return f"{kind}.{group}" if group else kind


def refuse(kind: str, group: str, name: str, causes: Sequence[Cause]) -> Invalid:
    """The `Invalid` that lists every violation."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f'{qualified(kind, group)} "{name}" is invalid: {listed}', tuple(causes))


def not_found(resource: str, name: str) -> NotFound:
    """The object does not exist."""
    return NotFound(f'{resource} "{name}" not found')


def not_served() -> NotFound:
    """The resource does not exist."""
    return NotFound("the server could not find the requested resource")


def already_exists(resource: str, name: str) -> AlreadyExists:
    """An object of that name exists."""
    return AlreadyExists(f'{resource} "{name}" already exists')


def conflict(resource: str, name: str, reason: str) -> Conflict:
    """The object is not the one that the request expects."""
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {reason}')


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def refused(resource: str, name: str, reason: str) -> Forbidden:
    """The request is understood and not allowed."""
    return Forbidden(f'{resource} "{name}" is forbidden: {reason}')


def terminating(resource: str, name: str, namespace: str) -> NamespaceTerminating:
    """Nothing new is created in a namespace that is being deleted."""
    reason = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause(
        "metadata.namespace",
        f"namespace {namespace} is being terminated",
        NamespaceTerminating.CAUSE,
    )
    return NamespaceTerminating(str(refused(resource, name, reason)), (cause,))


def too_old(version: int, oldest: int) -> Gone:
    """A version is no longer known."""
    return Gone(f"too old resource version: {version} ({oldest})")


class VersionTooLarge(Unavailable):
    """A version that the store has not reached yet: it comes from the future, or from elsewhere."""

    code = "VersionTooLarge"
    status = 504
    reason = "Timeout"
    retry_after = 1.0

    def __init__(self, version: int, latest: int) -> None:
        super().__init__(f"Timeout: Too large resource version: {version}, current: {latest}")
        message = "Too large resource version"
        self.causes = (Cause("", message, "ResourceVersionTooLarge"),)


def child(path: str, key: Any) -> str:
    """The path of a property or, for an integer, of a list's item."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)


def keyed(path: str, key: str) -> str:
    """The path of a map's entry."""
    return f"{path}[{key}]"

"""An object on its way into the store: from what was sent to what is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from captfctl.cluster.errors import BadRequest, TooLarge
from captfctl.embedded.store.collection import Record, key_of
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import FieldValidation
from captfctl.embedded.store.strategy import read_metadata
from captfctl.model.resource import Document

T = TypeVar("T")

OBJECT_MAX = 1536 * 1024
_ENCODER = msgspec.json.Encoder()


def decode(body: bytes) -> Document:
    """The document in a body."""
    document: Document = msgspec.json.decode(body)
    return document


@dataclass(frozen=True, slots=True)
class Read:
    """A document as its kind has it, and what to tell about what was dropped."""

    document: Document
    warnings: tuple[str, ...]


def read(served: Served, document: Document, validation: FieldValidation) -> Read:
    """Raises `BadRequest`."""
    if not isinstance(document, dict):
        raise BadRequest("the object provided is not a JSON object")
    _check_type(served, document)
    unknown: list[str] = []
    metadata = read_metadata(document.get("metadata") or {}, unknown)
    content = served.strategy.read(document | {"metadata": metadata}, unknown)
    resource = served.resource
    result: Document = {"apiVersion": resource.api_version, "kind": resource.kind} | content
    return Read(result, _report(served, unknown, validation))


def _check_type(served: Served, document: Document) -> None:
    resource = served.resource
    for field, title, wanted in (
        ("apiVersion", "API version", resource.api_version),
        ("kind", "kind", resource.kind),
    ):
        found = document.get(field) or wanted
        if found != wanted:
            raise BadRequest(
                f"the {title} in the data ({found}) does not match the expected {title} ({wanted})"
            )


def _report(served: Served, unknown: Sequence[str], validation: FieldValidation) -> tuple[str, ...]:
    if not unknown or validation is FieldValidation.IGNORE:
        return ()
    texts = tuple(f'unknown field "{path}"' for path in dict.fromkeys(unknown))
    if validation is FieldValidation.WARN:
        return texts
    kind, version = served.resource.kind, served.resource.version
    raise BadRequest(
        f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: '
        + ", ".join(texts)
    )


def convert(document: Document, wanted: type[T]) -> T:
    """A document that is asked something, and not stored, as a struct. Raises `BadRequest`."""
    try:
        return msgspec.convert(document, wanted)
    except msgspec.ValidationError as problem:
        raise BadRequest(f"the request's body cannot be read: {problem}") from None


def encode(document: Document) -> bytes:
    """Raises `TooLarge`."""
    body = _ENCODER.encode(document)
    if len(body) > OBJECT_MAX:
        raise TooLarge(
            f"the object is too large: {len(body)} bytes of JSON, at most {OBJECT_MAX} are stored"
        )
    return body


def record_of(
    document: Document, body: bytes, version: int, selectable: Mapping[str, str]
) -> Record:
    """`document` and `body`: the same object in its stored form.

    `selectable`: the field selectors of its collection, and the path each stands for.
    """
    metadata = document["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    return Record(
        key=key_of(namespace, name),
        namespace=namespace,
        name=name,
        uid=metadata.get("uid", ""),
        version=version,
        body=body,
        labels=metadata.get("labels", {}),
        fields={field: field_text(document, path) for field, path in selectable.items()},
        # An owner described without a uid owns nothing: it cannot be told from a later namesake.
        owners=tuple(
            owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner.get("uid")
        ),
        views={document["apiVersion"]: body},
    )


def field_text(document: Document, path: str) -> str:
    """A field's value as field selectors compare it."""
    value: Any = document
    for part in path.lstrip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case _:
            return str(value)

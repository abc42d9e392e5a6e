"""Lists as tables (`meta.k8s.io/v1` Table): what `kubectl get` prints."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from captfctl.embedded.apiserver import builtin_columns, jsonpath
from captfctl.embedded.apiserver.ages import age
from captfctl.embedded.apiserver.builtin_columns import NAME, Cells
from captfctl.embedded.store import PrinterColumn, RawPage, Served
from captfctl.model.resource import Document

TABLE_VERSION = "meta.k8s.io/v1"
_AGE_PATH = ".metadata.creationTimestamp"


class IncludeObject(StrEnum):
    """What of the object goes into its row (`?includeObject=`)."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


class _ColumnDefinition(msgspec.Struct):
    name: str
    type: str
    format: str
    description: str
    priority: int


class _Row(msgspec.Struct, omit_defaults=True):
    cells: Cells
    object: msgspec.Raw | None = None


class _ListMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _Table(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: _ListMeta
    column_definitions: list[_ColumnDefinition]
    rows: list[_Row]


class _Head(msgspec.Struct):
    metadata: msgspec.Raw


_ENCODER = msgspec.json.Encoder()
_HEAD = msgspec.json.Decoder(_Head)


def partial(body: bytes, kind: str = "PartialObjectMetadata") -> bytes:
    """An object's JSON cut down to its metadata."""
    metadata = bytes(_HEAD.decode(body).metadata)
    start = f'{{"kind":"{kind}","apiVersion":"{TABLE_VERSION}","metadata":'.encode()
    return start + metadata + b"}"


def raw_list(served: Served, page: RawPage) -> bytes:
    """The list of the page's objects; their JSON is taken as it is."""
    kind = served.list_kind or f"{served.resource.kind}List"
    return _list(kind, served.resource.api_version, page, page.items)


def partial_list(page: RawPage) -> bytes:
    """The list of the page's objects, metadata only."""
    items = [partial(body) for body in page.items]
    return _list("PartialObjectMetadataList", TABLE_VERSION, page, items)


def _list(kind: str, version: str, page: RawPage, items: Sequence[bytes]) -> bytes:
    metadata = _ListMeta(page.resource_version, page.continue_token, page.remaining)
    head = {"kind": kind, "apiVersion": version, "metadata": metadata}
    start = _ENCODER.encode(head)[:-1] + b',"items":['
    return b"".join((start, b",".join(items), b"]}"))


def table(
    served: Served,
    items: Sequence[bytes],
    now: datetime,
    *,
    include: IncludeObject = IncludeObject.METADATA,
    resource_version: str = "",
    continue_token: str = "",
    remaining: int | None = None,
) -> bytes:
    """The table of these objects (their JSON), as JSON."""
    columns, cells = _layout(served)
    return _ENCODER.encode(
        _Table(
            kind="Table",
            api_version=TABLE_VERSION,
            metadata=_ListMeta(resource_version, continue_token, remaining),
            column_definitions=[
                _ColumnDefinition(c.name, c.type, c.format, c.description, c.priority)
                for c in columns
            ],
            rows=[_Row(cells(body, now), _included(body, include)) for body in items],
        )
    )


def _included(body: bytes, include: IncludeObject) -> msgspec.Raw | None:
    match include:
        case IncludeObject.METADATA:
            return msgspec.Raw(partial(body))
        case IncludeObject.OBJECT:
            return msgspec.Raw(body)
    return None


def _layout(served: Served) -> tuple[tuple[PrinterColumn, ...], Any]:
    """The columns of a resource, and the function that makes a row of an object."""
    builtin = builtin_columns.COLUMNS.get((served.resource.group, served.resource.kind))
    if builtin and not served.custom:
        return builtin.columns, builtin.cells
    own = served.columns or (PrinterColumn("Age", "date", _AGE_PATH),)
    shown = tuple(c for c in own if c.name.lower() != "name" or c.json_path != ".metadata.name")

    def cells(body: bytes, now: datetime) -> Cells:
        document: Document = msgspec.json.decode(body)
        return [document["metadata"]["name"], *(cell_of(c, document, now) for c in shown)]

    return (NAME, *shown), cells


def cell_of(column: PrinterColumn, document: Document, now: datetime) -> Any:
    """The value that the column's path leads to, in the column's type; None for nothing."""
    try:
        found = jsonpath.parse(column.json_path).find(document)
    except jsonpath.JsonPathError:
        return None
    if not found or found[0] is None:
        return None
    value = found[0]
    match column.type:
        case "date":
            return age(value, now) if isinstance(value, str) else None
        case "integer":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return int(value) if number else None
        case "number":
            return value if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()

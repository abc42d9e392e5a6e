"""The types of Kubernetes' own kinds: the one source for the store, the API server and files.

`builtin.json` lists every field of every type by its OpenAPI name; `make builtin-types` writes it
from the sources of Kubernetes. A field's type is spelled as in Go: `*T` may be absent, `[]T` is a
list, `map[string]T` a map, and T another type of the file or a `Scalar`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from captfctl.model.resource import Document

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
DELETE_OPTIONS = f"{META}.DeleteOptions"
JSON_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class Scalar(StrEnum):
    """Types without fields that the file knows."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    BYTES = "bytes"
    """Base64 in JSON."""
    TIME = "time"
    """To the second."""
    MICRO_TIME = "microtime"
    QUANTITY = "quantity"
    INT_OR_STRING = "int-or-string"
    STRINGS = "strings"
    """A list of texts that is a message of its own in protobuf."""
    FIELDS = "fields"
    """Field sets in `managedFields`."""
    JSON = "json"
    """Anything."""
    SCHEMA_OR_ARRAY = "schema-or-array"
    SCHEMA_OR_BOOL = "schema-or-bool"
    SCHEMA_OR_STRINGS = "schema-or-strings"


class Form(Enum):
    SCALAR = "scalar"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class Shape:
    """A field's type, taken apart. `name` is a scalar's or a struct's; `item` a list's or map's."""

    form: Form
    name: str = ""
    pointer: bool = False
    item: "Shape | None" = None


@cache
def shape_of(spelling: str) -> Shape:
    bare = spelling.removeprefix("*")
    for prefix, form in (("[]", Form.LIST), ("map[string]", Form.MAP)):
        if bare.startswith(prefix):
            return Shape(form, spelling, item=shape_of(bare.removeprefix(prefix)))
    if bare.startswith("io."):
        return Shape(Form.STRUCT, bare, bare != spelling)
    return Shape(Form.SCALAR, Scalar(bare), bare != spelling)


class Field(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One field of a struct."""

    type: str
    number: int = 0
    """In protobuf; 0: the message does not have it."""
    within: tuple[int, ...] = ()
    """The numbers of the messages around it that JSON does not show, from the outside."""
    always: bool = False
    """Kubernetes writes it when nothing is set, too."""
    required: bool = False
    list: str = ""
    """A list's `x-kubernetes-list-type`."""
    keys: tuple[str, ...] = ()
    merge_key: str = ""
    strategy: str = ""
    """Strategic merge patches: `merge`, `retainKeys`, with commas between."""
    atomic: bool = False
    """A map is set and owned as a whole."""
    default: Any = None

    @property
    def shape(self) -> Shape:
        return shape_of(self.type)


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One type, its fields by JSON name."""

    fields: dict[str, Field]
    kind: tuple[str, str, str] | None = None
    """Group, version and kind of an API object's type."""
    atomic: bool = False
    """Its fields are set and owned as a whole."""

    @property
    def required(self) -> list[str]:
        return [name for name, field in self.fields.items() if field.required]


class _File(msgspec.Struct, frozen=True):
    kubernetes: str
    types: dict[str, Struct]


@lru_cache(maxsize=1)
def _file() -> _File:
    text = Path(__file__).with_name("builtin.json").read_bytes()
    return msgspec.json.decode(text, type=_File)


@lru_cache(maxsize=1)
def _names() -> dict[tuple[str, str, str], str]:
    return {struct.kind: name for name, struct in _file().types.items() if struct.kind}


def kubernetes_version() -> str:
    """The version that the types are of."""
    return _file().kubernetes


def names() -> Iterator[str]:
    """Every type's name."""
    return iter(_file().types)


def struct(name: str) -> Struct:
    """A type by its OpenAPI name. Shared: read only."""
    return _file().types[name]


def name_of(group: str, version: str, kind: str) -> str:
    """The name of a kind's type; empty when it is not a built-in kind."""
    return _names().get((group, version, kind), "")


def unset(name: str) -> Document:
    """What Kubernetes writes for a struct in which nothing is set: the fields it always writes."""
    return {key: _unset(field.shape) for key, field in struct(name).fields.items() if field.always}


def _unset(shape: Shape) -> Any:
    if shape.pointer:
        return None
    if shape.form is Form.STRUCT:
        return unset(shape.name)
    return _ZEROS.get(shape.name)


_ZEROS: dict[str, Any] = {
    Scalar.STRING: "",
    Scalar.BOOL: False,
    Scalar.INT32: 0,
    Scalar.INT64: 0,
    Scalar.DOUBLE: 0,
    Scalar.QUANTITY: "0",
    Scalar.INT_OR_STRING: 0,
}
"""Everything else that is not set is null."""

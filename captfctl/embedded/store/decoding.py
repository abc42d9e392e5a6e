"""Reading an object of a built-in kind as the server's Go types would.

Reading normalises what a round trip through those types would: nulls and empty lists and maps go,
times lose what their type does not keep, quantities become text, and the fields that Kubernetes
always writes are there, also when they are false, zero or empty. Clients refuse objects without.
"""

import copy
import re
from datetime import UTC
from functools import cache
from typing import Any

from captfctl.embedded.schemas import builtin
from captfctl.embedded.schemas.builtin import JSON_SCHEMA, Form, Scalar, Shape
from captfctl.embedded.store.formats import is_base64, is_time
from captfctl.embedded.store.quantity import QuantityError, parse_quantity
from captfctl.embedded.store.violations import child, type_name
from captfctl.model.meta import micro_time, parse_time
from captfctl.model.resource import Document

_JSON_TYPES: dict[str, type] = {
    Scalar.BYTES: str,
    Scalar.TIME: str,
    Scalar.MICRO_TIME: str,
    Scalar.BOOL: bool,
}
_MICROSECONDS = re.compile(r":\d\d\.\d{6}(Z|[+-])")
_SCHEMA_OR_ELSE = frozenset(
    (Scalar.SCHEMA_OR_ARRAY, Scalar.SCHEMA_OR_BOOL, Scalar.SCHEMA_OR_STRINGS)
)
_GO_NAMES = {"double": "float64", "bytes": "[]uint8"}
_PACKAGE = re.compile(r"\bio\.[\w.-]+\.")


class WrongType(Exception):
    """A field holds another JSON type than its own. The text names the field."""


def read(struct: str, value: Document, unknown: list[str], path: str = "") -> Document:
    """`value` as an object of the named type. Unknown fields go to `unknown` and are dropped.

    Raises `WrongType`.
    """
    fields = builtin.struct(struct).fields
    result: Document = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            unknown.append(child(path, key))
            continue
        if item is None:
            continue
        shape = field.shape
        if shape.name is Scalar.STRING and isinstance(item, str):  # most fields are
            result[key] = item
            continue
        known = _read(shape, item, unknown, child(path, key))
        if known == [] or (known == {} and shape.form is Form.MAP and key != "matchLabels"):
            continue
        result[key] = known
    for key, unset_value in _always(struct).items():
        if key not in result:
            whole = isinstance(unset_value, dict | list)
            result[key] = copy.deepcopy(unset_value) if whole else unset_value
    return result


def unset(struct: str) -> Document:
    """What reading makes of an object of the named type in which nothing is set."""
    return copy.deepcopy(_always(struct))


@cache
def _always(struct: str) -> Document:
    return _without_nulls(builtin.unset(struct))


def _without_nulls(document: Document) -> Document:
    return {
        key: _without_nulls(value) if isinstance(value, dict) else value
        for key, value in document.items()
        if value is not None
    }


def _read(shape: Shape, value: Any, unknown: list[str], path: str) -> Any:
    item = shape.item
    match shape.form:
        case Form.SCALAR:
            return _scalar(shape.name, value, path)
        case Form.STRUCT:
            _expect(isinstance(value, dict), value, shape.name, path)
            if shape.name == JSON_SCHEMA:
                # Kept as it is: in a schema, what is empty means something.
                read(JSON_SCHEMA, value, [], path)
                return value
            return read(shape.name, value, unknown, path)
        case Form.LIST:
            assert item is not None
            _expect(isinstance(value, list), value, shape.name, path)
            return [
                _read(item, one, unknown, child(path, i))
                for i, one in enumerate(value)
                if one is not None
            ]
    assert item is not None
    _expect(isinstance(value, dict), value, shape.name, path)
    return {
        key: "" if one is None else _read(item, one, unknown, child(path, key))
        for key, one in value.items()
    }


def _scalar(name: str, value: Any, path: str) -> Any:
    if name == Scalar.STRING:
        _expect(isinstance(value, str), value, name, path)
        return value
    match name:
        case Scalar.INT32 | Scalar.INT64:
            return _integer(name, value, path)
        case Scalar.DOUBLE:
            _expect(_is_number(value), value, name, path)
            return value
        case Scalar.QUANTITY:
            return _quantity(value, path)
        case Scalar.INT_OR_STRING:
            _expect(isinstance(value, str) or _is_number(value), value, name, path)
            return value
    if name in _SCHEMA_OR_ELSE and isinstance(value, dict):
        read(JSON_SCHEMA, value, [], path)
    if name not in _JSON_TYPES:
        return value
    _expect(isinstance(value, _JSON_TYPES[name]), value, name, path)
    if name in (Scalar.TIME, Scalar.MICRO_TIME):
        return _time(name, value, path)
    if name == Scalar.BYTES and not is_base64(value):
        raise WrongType(f"{path}: illegal base64 data")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(name: str, value: Any, path: str) -> int:
    whole = _is_number(value) and value == int(value)
    _expect(whole, value, name, path)
    return int(value)


def _quantity(value: Any, path: str) -> str:
    _expect(isinstance(value, str) or _is_number(value), value, Scalar.QUANTITY, path)
    text = value if isinstance(value, str) else f"{value:g}" if value % 1 else str(int(value))
    try:
        parse_quantity(text)
    except QuantityError as error:
        raise WrongType(f"{path}: {error}") from None
    return text


def _time(name: str, value: str, path: str) -> str:
    moment = parse_time(value) if is_time(value) else None
    if moment is None:
        raise WrongType(f'{path}: parsing time "{value}": it is not written as RFC 3339 wants it')
    if name == Scalar.MICRO_TIME and not _MICROSECONDS.search(value):
        raise WrongType(f'{path}: parsing time "{value}": six digits must follow the seconds')
    moment = moment.astimezone(UTC)
    if name == Scalar.MICRO_TIME:
        return micro_time(moment)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _expect(holds: bool, value: Any, wanted: str, path: str) -> None:
    if not holds:
        named = _GO_NAMES.get(wanted) or _PACKAGE.sub("", wanted)
        raise WrongType(
            f"json: cannot unmarshal {type_name(value)} into field {path} of type {named}"
        )

"""The fields of Kubernetes' own kinds, and reading an object as the server's Go types would.

`builtin_types.json` lists every field with its type (tests/store/make_builtin_types.py writes it).
Reading normalises what a round trip through those types would: nulls and empty lists and maps go,
times lose what their type does not keep, quantities become text.
"""

import json
import re
from datetime import UTC
from functools import cache
from importlib.resources import files
from typing import Any

from captfctl.embedded.store.formats import is_base64, is_time
from captfctl.embedded.store.quantity import QuantityError, parse_quantity
from captfctl.embedded.store.violations import child, type_name
from captfctl.model.meta import micro_time, parse_time
from captfctl.model.resource import Document

_JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "bytes": str,
    "time": str,
    "micro": str,
    "boolean": bool,
}
_MICROSECONDS = re.compile(r":\d\d\.\d{6}(Z|[+-])")
_GO_NAMES = {"boolean": "bool", "integer": "int", "number": "float64", "bytes": "[]uint8"}


class WrongType(Exception):
    """A field holds another JSON type than its own. The text names the field."""


@cache
def _types() -> dict[str, dict[str, str]]:
    text = files("captfctl.embedded.store").joinpath("builtin_types.json").read_text()
    types: dict[str, dict[str, str]] = json.loads(text)
    return types


def read(kind: str, value: Document, unknown: list[str], path: str = "") -> Document:
    """`value` as an object of the named struct. Unknown fields go to `unknown` and are dropped.

    Raises `WrongType`.
    """
    fields = _types()[kind]
    result: Document = {}
    for key, item in value.items():
        token = fields.get(key)
        where = child(path, key)
        if token is None:
            unknown.append(where)
            continue
        if item is None:
            continue
        known = _read(token, item, unknown, where)
        if known != [] and (known != {} or token[0] not in "{[" or key == "matchLabels"):
            result[key] = known
    return result


def _read(token: str, value: Any, unknown: list[str], path: str) -> Any:
    match token[0]:
        case "[":
            _expect(isinstance(value, list), value, token, path)
            return [
                _read(token[1:], item, unknown, child(path, i))
                for i, item in enumerate(value)
                if item is not None
            ]
        case "{":
            _expect(isinstance(value, dict), value, token, path)
            return {
                key: "" if item is None else _read(token[1:], item, unknown, child(path, key))
                for key, item in value.items()
            }
    if token[0].isupper():
        _expect(isinstance(value, dict), value, token, path)
        if token == "V1JSONSchemaProps":
            return value
        return read(token, value, unknown, path)
    return _scalar(token, value, path)


def _scalar(token: str, value: Any, path: str) -> Any:
    match token:
        case "any":
            return value
        case "integer":
            return _integer(value, path)
        case "number":
            _expect(_is_number(value), value, token, path)
            return value
        case "quantity":
            return _quantity(value, path)
        case "int-or-string":
            _expect(isinstance(value, str) or _is_number(value), value, token, path)
            return value
    _expect(isinstance(value, _JSON_TYPES[token]), value, token, path)
    if token in ("time", "micro"):
        return _time(token, value, path)
    if token == "bytes" and not is_base64(value):
        raise WrongType(f"{path}: illegal base64 data")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any, path: str) -> int:
    whole = _is_number(value) and value == int(value)
    _expect(whole, value, "integer", path)
    return int(value)


def _quantity(value: Any, path: str) -> str:
    _expect(isinstance(value, str) or _is_number(value), value, "quantity", path)
    text = value if isinstance(value, str) else f"{value:g}" if value % 1 else str(int(value))
    try:
        parse_quantity(text)
    except QuantityError as error:
        raise WrongType(f"{path}: {error}") from None
    return text


def _time(token: str, value: str, path: str) -> str:
    moment = parse_time(value) if is_time(value) else None
    if moment is None:
        raise WrongType(f'{path}: parsing time "{value}": it is not written as RFC 3339 wants it')
    if token == "micro" and not _MICROSECONDS.search(value):
        raise WrongType(f'{path}: parsing time "{value}": six digits must follow the seconds')
    moment = moment.astimezone(UTC)
    return micro_time(moment) if token == "micro" else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _expect(holds: bool, value: Any, token: str, path: str) -> None:
    if not holds:
        wanted = _GO_NAMES.get(token, token.replace("[", "[]").replace("{", "map[string]"))
        raise WrongType(
            f"json: cannot unmarshal {type_name(value)} into field {path} of type {wanted}"
        )


@cache
def schema_of(kind: str) -> Document:
    """The same as a structural schema, for discovery, `kubectl explain` and patches.

    Schemas of the same struct are one shared object: do not change them.
    """
    return {
        "type": "object",
        "properties": {
            key: _schema(token) | _merge(key, token) for key, token in _types()[kind].items()
        },
    }


def _schema(token: str) -> Document:
    match token[0]:
        case "[":
            return {"type": "array", "items": _schema(token[1:])}
        case "{":
            return {"type": "object", "additionalProperties": _schema(token[1:])}
    if token == "V1JSONSchemaProps" or token == "any":
        return {"x-kubernetes-preserve-unknown-fields": True}
    if token[0].isupper():
        return schema_of(token)
    return dict(_SCALARS.get(token, {"type": token}))


_SCALARS: dict[str, Document] = {
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "micro": {"type": "string", "format": "date-time"},
    "quantity": {"x-kubernetes-int-or-string": True},
    "int-or-string": {"x-kubernetes-int-or-string": True},
}

# By what the items of a list are found again when it is merged or applied.
_MERGE_KEYS: dict[tuple[str, str], tuple[str, ...]] = {
    ("containers", "[V1Container"): ("name",),
    ("initContainers", "[V1Container"): ("name",),
    ("ephemeralContainers", "[V1EphemeralContainer"): ("name",),
    ("volumes", "[V1Volume"): ("name",),
    ("imagePullSecrets", "[V1LocalObjectReference"): ("name",),
    ("env", "[V1EnvVar"): ("name",),
    ("volumeMounts", "[V1VolumeMount"): ("mountPath",),
    ("volumeDevices", "[V1VolumeDevice"): ("devicePath",),
    ("ports", "[V1ContainerPort"): ("containerPort", "protocol"),
    ("hostAliases", "[V1HostAlias"): ("ip",),
    ("ownerReferences", "[V1OwnerReference"): ("uid",),
    ("addresses", "[V1NodeAddress"): ("type",),
    ("hostIPs", "[V1HostIP"): ("ip",),
    ("podIPs", "[V1PodIP"): ("ip",),
    ("secrets", "[V1ObjectReference"): ("name",),
    ("topologySpreadConstraints", "[V1TopologySpreadConstraint"): (
        "topologyKey",
        "whenUnsatisfiable",
    ),
}


def _merge(key: str, token: str) -> Document:
    keys = _MERGE_KEYS.get((key, token))
    if keys is None and key == "conditions" and token.startswith("[V1"):
        # A Job's conditions are replaced as a whole, as in Kubernetes.
        keys = () if token == "[V1JobCondition" else ("type",)
    if keys:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    if key == "finalizers":
        return {"x-kubernetes-list-type": "set"}
    return {"x-kubernetes-list-type": "atomic"} if token[0] == "[" else {}

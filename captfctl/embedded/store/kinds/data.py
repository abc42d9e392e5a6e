"""Secrets and ConfigMaps."""

import base64
from collections.abc import Iterable

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.naming import data_key_problems
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import (
    forbidden,
    immutable,
    invalid,
    keyed,
    required,
)
from captfctl.model.resource import Document

DATA_MAX = 1024 * 1024
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


class SecretStrategy(Typed):
    """Secrets."""

    def default(self, document: Document) -> None:
        document.setdefault("type", "Opaque")
        # Written only: what is read back is in `data`.
        for key, text in document.pop("stringData", {}).items():
            document.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        data = document.get("data", {})
        causes = _keys("data", data)
        if sum(_decoded_size(value) for value in data.values()) > DATA_MAX:
            causes.append(_too_much("data"))
        causes += [
            required(keyed("data", key))
            for key in _REQUIRED_KEYS.get(document["type"], ())
            if key not in data
        ]
        if old is not None:
            causes += _frozen(document, old, ("data",))
            if document["type"] != old.get("type"):
                causes.append(immutable("type", document["type"]))
        return causes


class ConfigMapStrategy(Typed):
    """ConfigMaps."""

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        data, binary = document.get("data", {}), document.get("binaryData", {})
        causes = _keys("data", data) + _keys("binaryData", binary)
        causes += [
            invalid(keyed("data", key), key, "duplicate of key present in binaryData")
            for key in data
            if key in binary
        ]
        size = sum(len(value.encode()) for value in data.values())
        if size + sum(_decoded_size(value) for value in binary.values()) > DATA_MAX:
            causes.append(_too_much(""))
        return causes + (_frozen(document, old, ("data", "binaryData")) if old else [])


def _keys(path: str, data: Iterable[str]) -> list[Cause]:
    return [
        invalid(keyed(path, key), key, problem)
        for key in data
        for problem in data_key_problems(key)
    ]


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


def _too_much(path: str) -> Cause:
    return Cause(path, f"Too long: may not be more than {DATA_MAX} bytes", "FieldValueTooLong")


def _frozen(document: Document, old: Document, fields: tuple[str, ...]) -> list[Cause]:
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    causes = [] if document.get("immutable") else [forbidden("immutable", detail)]
    return causes + [
        forbidden(field, detail) for field in fields if document.get(field) != old.get(field)
    ]

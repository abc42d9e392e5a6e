"""What a kind of API object is called, where it is served and which type holds it."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from captfctl.model.meta import PartialObject

T = TypeVar("T")
Document = dict[str, Any]


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One served resource.

    `type` is what its objects decode into: a struct of `captfctl.model`, or `Document` for code
    that handles objects of any kind. `partial` asks the server for metadata only.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[T]
    partial: bool = False

    @property
    def api_version(self) -> str:
        """Group and version, as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The full name, as kubectl writes it: `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of a subresource of it."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def decode(self, body: bytes | str) -> T:
        """Raises `msgspec.ValidationError` when a field has another JSON type than ours."""
        obj: T = _decoder(self.type).decode(body)  # type: ignore[arg-type]
        return obj

    def encode(self, obj: T) -> bytes:
        """The object as JSON."""
        return _ENCODER.encode(obj)

    def copy(self, obj: T) -> T:
        """A deep copy: what caches hand out is shared and must not be changed."""
        return self.decode(self.encode(obj))

    def untyped(self) -> "Resource[Document]":
        """The same resource, for code that handles objects of any kind."""
        return Resource(self.group, self.version, self.kind, self.plural, self.namespaced, Document)

    def metadata_only(self) -> "Resource[PartialObject]":
        """The same resource, of which the server sends metadata only."""
        return replace(self, type=PartialObject, partial=True)  # type: ignore[return-value,arg-type]

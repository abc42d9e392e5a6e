"""What is particular to a kind: how its objects are read, prepared, checked and deleted.

The store calls a strategy with objects in the version that the request names. `Strategy` is what
holds for every kind; `captfctl.embedded.store.kinds` has one module per kind that differs.
"""

from datetime import datetime
from typing import Any

from captfctl.cluster.errors import BadRequest, Cause
from captfctl.embedded.schemas import builtin
from captfctl.embedded.store.decoding import WrongType, read, unset
from captfctl.embedded.store.naming import NameRule
from captfctl.model.resource import Document, Resource


class Strategy:
    """A kind without status, generation or graceful deletion."""

    name_rule = NameRule.SUBDOMAIN
    has_status = False
    has_generation = False
    deletes_collections = True
    """Several objects can be deleted by one request."""
    unconditional_update = True
    """A replacement without a resourceVersion is accepted."""
    subresources: frozenset[str] = frozenset()
    """Subresources that are written like the object itself."""

    def read(self, document: Document, unknown: list[str]) -> Document:
        """The document with everything dropped that the kind does not have, and defaults filled in.

        Paths of dropped fields go to `unknown`. Raises `BadRequest`.
        """
        raise NotImplementedError

    def prepare_create(self, document: Document, now: datetime) -> None:
        """Set, in place, what only the server sets on a new object."""
        if self.has_status:
            document.pop("status", None)
        if self.has_generation:
            document["metadata"]["generation"] = 1

    def prepare_update(self, document: Document, old: Document, subresource: str) -> Document:
        """The object to store when `document` is wanted in place of `old`."""
        if subresource == "status":
            return self.with_status(document, old)
        if self.has_status:
            _take(document, old, "status")
        if self.has_generation and self.changed(document, old):
            document["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return document

    def with_status(self, document: Document, old: Document) -> Document:
        """`document`'s status and metadata; everything else as it was."""
        kept = {key: value for key, value in old.items() if key not in ("status", "metadata")}
        kept["metadata"] = document["metadata"]
        return kept | ({"status": document["status"]} if "status" in document else {})

    def changed(self, document: Document, old: Document) -> bool:
        """Whether what the generation counts differs."""
        return bool(document.get("spec") != old.get("spec"))

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        """Violations in the object, and in the change from `old`."""
        return []

    def grace(self, document: Document, wanted: int | None) -> int | None:
        """Seconds between marking for deletion and removal; None: the kind has no such thing."""
        return None

    def removable(self, document: Document) -> bool:
        """Whether nothing of the kind's own holds back the removal of a marked object."""
        return True

    def refuses_delete(self, name: str) -> str:
        """Why an object of this name can never be deleted; empty: it can."""
        return ""

    def mark_deleting(self, document: Document) -> None:
        """Change what a kind shows while it is being deleted."""


def _take(document: Document, old: Document, key: str) -> None:
    document.pop(key, None)
    if key in old:
        document[key] = old[key]


class Typed(Strategy):
    """A kind of Kubernetes' own, read as its Go type would."""

    def __init__(self, resource: Resource[Document]) -> None:
        self.resource = resource
        self.struct = builtin.name_of(resource.group, resource.version, resource.kind)

    def read(self, document: Document, unknown: list[str]) -> Document:
        # The metadata has been read before.
        content = {key: value for key, value in document.items() if key != "metadata"}
        try:
            result = read(self.struct, content, unknown)
        except WrongType as error:
            kind, version = self.resource.kind, self.resource.version
            raise BadRequest(
                f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
            ) from None
        result["metadata"] = document["metadata"]
        self.default(result)
        return result

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        if self.has_status:
            document["status"] = unset(self.struct).get("status", {})

    def default(self, document: Document) -> None:
        """Fill in defaults, in place."""


def read_metadata(metadata: Any, unknown: list[str]) -> Document:
    """Raises `BadRequest`."""
    if not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    try:
        result = read(builtin.OBJECT_META, metadata, unknown, "metadata")
    except WrongType as error:
        raise BadRequest(str(error)) from None
    if owners := result.get("ownerReferences"):
        result["ownerReferences"] = [
            owner for index, owner in enumerate(owners) if owner not in owners[:index]
        ]
    return result

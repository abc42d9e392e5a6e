"""Objects that files describe as they stood in a cluster: what only a server sets is kept."""

from dataclasses import dataclass
from typing import Any

from captfctl.cluster.errors import Cause, NotFound
from captfctl.embedded.store.collection import key_of
from captfctl.embedded.store.engine import Engine
from captfctl.model.resource import Document

_OF_METADATA = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


@dataclass(frozen=True, slots=True)
class Given:
    """What a description says of these fields; `status` None: nothing."""

    metadata: dict[str, Any]
    status: Any

    @property
    def uid(self) -> str:
        """The UID that the description gives; empty when it gives none."""
        return str(self.metadata.get("uid", ""))

    def put_back(self, document: Document) -> None:
        """After the store has prepared `document` as a new object, make it the described one.

        A generation is left as the store set it when none is given: without one, nothing could be
        said about observed generations.
        """
        metadata = document["metadata"]
        for key in _OF_METADATA:
            if key in self.metadata:
                metadata[key] = self.metadata[key]
            elif key != "generation":
                metadata.pop(key, None)
        if self.status is not None:
            document["status"] = self.status


def take(document: Document, *, with_status: bool) -> Given:
    """What is to be put back; versions and field managers of another server are dropped.

    `with_status`: the description has a status, and not only what a kind always has in one.
    """
    metadata = document["metadata"]
    for key in ("resourceVersion", "managedFields"):
        metadata.pop(key, None)
    given = {key: metadata[key] for key in _OF_METADATA if key in metadata}
    return Given(given, document.get("status") if with_status else None)


def excused(engine: Engine, metadata: Document, causes: list[Cause]) -> list[Cause]:
    """`causes` without those about the uid of an owner that was described without one."""
    paths = {
        f"metadata.ownerReferences[{index}].uid"
        for index, owner in enumerate(metadata.get("ownerReferences", ()))
        if not owner.get("uid") and _is_without_uid(engine, owner, metadata.get("namespace", ""))
    }
    return [cause for cause in causes if cause.field not in paths]


def _is_without_uid(engine: Engine, owner: Document, namespace: str) -> bool:
    try:
        served = engine.registry.find_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
    except NotFound:
        return False
    key = key_of(namespace if served.resource.namespaced else "", owner.get("name", ""))
    record = engine.collection(served).records.get(key)
    return record is not None and not record.uid

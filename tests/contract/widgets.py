"""Objects of kinds of our own."""

from collections.abc import Iterator
from typing import Any

from captfctl.cluster.door import EventType, Watch, WatchEvent
from captfctl.model.core import CustomResourceDefinition
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document

ANYTHING: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    group: str,
    schema: Document | None = None,
    *,
    status: bool = True,
    namespaced: bool = True,
    root: Document | None = None,
    **version: Any,
) -> CustomResourceDefinition:
    properties = {"spec": schema or ANYTHING, "status": ANYTHING}
    first: Document = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root or {"type": "object", "properties": properties}},
    }
    if status:
        first["subresources"] = {"status": {}}
    return CustomResourceDefinition(
        metadata=ObjectMeta(name=f"widgets.{group}"),
        spec={
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [first | version],
        },
    )


def make(name: str, spec: Any = None, **metadata: Any) -> Document:
    made: Document = {"metadata": {"name": name, **metadata}}
    if spec is not None:
        made["spec"] = spec
    return made


def version(obj: Document) -> str:
    found: str = obj["metadata"]["resourceVersion"]
    return found


def names(objects: list[Document]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def changes(watch: Watch[Any]) -> Iterator[WatchEvent[Any]]:
    """A watch's events without the bookmarks, which may come at any time."""
    return (event for event in watch if event.type is not EventType.BOOKMARK)

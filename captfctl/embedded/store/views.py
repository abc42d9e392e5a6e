"""One stored object in the versions and groups it is served in."""

from typing import Protocol

import msgspec

from captfctl.model.resource import Document

_decode = msgspec.json.decode
_encode = msgspec.json.encode


class View(Protocol):
    """Converts between what is stored and what one version of a resource shows."""

    @property
    def api_version(self) -> str:
        """The apiVersion of this view; documents that carry it need no conversion."""
        ...

    def show(self, stored: Document) -> Document:
        """The stored document as this view shows it."""
        ...

    def store(self, shown: Document) -> Document:
        """A document of this view as it is stored."""
        ...

    def stored_path(self, field: str) -> str:
        """Where a field that can be selected by stands in what is stored."""
        ...


# Field selectors that are named unlike the field whose value they mean.
_SELECTED = {"status.successful": "status.succeeded", "source": "source.component"}


class VersionView:
    """The versions of one resource differ in name only (conversion strategy `None`)."""

    def __init__(self, api_version: str, stored_as: str) -> None:
        self.api_version = api_version
        self.stored_as = stored_as

    def show(self, stored: Document) -> Document:
        return stored | {"apiVersion": self.api_version}

    def store(self, shown: Document) -> Document:
        return shown | {"apiVersion": self.stored_as}

    def stored_path(self, field: str) -> str:
        return _SELECTED.get(field, field)


# Field of an events.k8s.io/v1 Event -> field of the core Event it is stored as.
_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_ALWAYS_IN_CORE = ("reportingComponent", "reportingInstance")
"""Fields of a core Event that are there also when empty, unlike those of the other one."""

_CORE_FIELDS = {core: new for new, core in _EVENT_FIELDS.items()}


class EventView:
    """An events.k8s.io/v1 Event, stored as a core Event."""

    api_version = "events.k8s.io/v1"

    def show(self, stored: Document) -> Document:
        shown = {
            _CORE_FIELDS.get(key, key): value
            for key, value in stored.items()
            if value != "" or key not in _ALWAYS_IN_CORE
        }
        if series := shown.get("series"):
            shown["series"] = {"count": 0} | series
        return shown | {"apiVersion": self.api_version}

    def store(self, shown: Document) -> Document:
        stored = {_EVENT_FIELDS.get(key, key): value for key, value in shown.items()}
        return dict.fromkeys(_ALWAYS_IN_CORE, "") | stored | {"apiVersion": "v1"}

    def stored_path(self, field: str) -> str:
        first, dot, rest = field.partition(".")
        return _EVENT_FIELDS.get(first, first) + dot + rest


def shown_body(view: View, body: bytes, views: dict[str, bytes]) -> bytes:
    """A stored object's JSON in this view. `views` holds the stored form and remembers others."""
    found = views.get(view.api_version)
    if found is None:
        found = views[view.api_version] = _encode(view.show(_decode(body)))
    return found

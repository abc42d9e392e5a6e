"""A door whose lists and watches are played by the test."""

import queue
import threading
from collections import deque

from captfctl.cluster.door import EventType, Page, WatchEvent
from captfctl.model.core import ConfigMap
from captfctl.model.meta import ObjectMeta
from tests.support.clock import DEADLINE


def config_map(name, version, namespace="team-a", uid="", **labels):
    """A small object. Its uid follows from its name unless given."""
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid or f"uid-{name}",
        resource_version=str(version),
        labels=labels,
    )
    return ConfigMap(metadata=metadata)


def page(version, *items, token=""):
    return Page(list(items), str(version), token)


class ScriptedWatch:
    """A watch that delivers what the test sends."""

    def __init__(self, version, timeout_seconds):
        self.version = version
        self.timeout_seconds = timeout_seconds
        self.closed = threading.Event()
        self._events = queue.Queue()

    def added(self, obj):
        self._send(EventType.ADDED, obj)

    def modified(self, obj):
        self._send(EventType.MODIFIED, obj)

    def deleted(self, obj):
        self._send(EventType.DELETED, obj)

    def bookmark(self, version):
        self._events.put(WatchEvent(EventType.BOOKMARK, None, str(version)))

    def fail(self, error):
        self._events.put(error)

    def end(self):
        self._events.put(None)

    def close(self):
        self.closed.set()
        self.end()

    def _send(self, kind, obj):
        self._events.put(WatchEvent(kind, obj, obj.metadata.resource_version))

    def __iter__(self):
        while (event := self._events.get(timeout=60)) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class ScriptedDoor:
    """Answers lists from `lists`, a page or an error each, and hands every watch to the test.

    `watch_errors` are raised by the next watches in place of an answer. `requests` records all.
    """

    def __init__(self, *lists):
        self.lists = deque(lists)
        self.watch_errors = deque()
        self.requests = []
        self._watches = queue.Queue()

    def list(self, resource, namespace="", **options):
        self.requests.append(("list", options.get("limit"), options.get("continue_token")))
        answer = self.lists.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def watch(self, resource, namespace="", *, resource_version, timeout_seconds, **selectors):
        self.requests.append(("watch", resource_version))
        if self.watch_errors:
            raise self.watch_errors.popleft()
        watch = ScriptedWatch(resource_version, timeout_seconds)
        self._watches.put(watch)
        return watch

    def next_watch(self) -> ScriptedWatch:
        """The watch that was or will be opened next."""
        return self._watches.get(timeout=DEADLINE)

    def watch_opened(self) -> bool:
        return not self._watches.empty()

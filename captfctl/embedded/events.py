"""Events that the control plane's own parts post. Best effort: none ever fails its work."""

import logging
import threading
from collections import OrderedDict
from enum import StrEnum

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.errors import CaptfError
from captfctl.model.conditions import cut
from captfctl.model.core import Event, ObjectReference
from captfctl.model.meta import ObjectMeta, micro_time
from captfctl.model.resources import EVENTS

_NOTE_MAX = 1024
_NAME_MAX = 230
_REMEMBERED = 4096
"""So many events are compared with the next one of their object and reason."""

log = logging.getLogger(__name__)


class EventType(StrEnum):
    """The types of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Events:
    """Posts events of one component. The same event of the same object is posted once in a row."""

    def __init__(self, door: Door, clock: Clock, component: str, instance: str) -> None:
        self._door = door
        self._clock = clock
        self._component = component
        self._instance = instance
        self._last: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()
        self._number = 0

    def normal(self, regarding: ObjectReference, reason: str, note: str, action: str) -> None:
        """Post a Normal event."""
        self._post(regarding, EventType.NORMAL, reason, note, action)

    def warning(self, regarding: ObjectReference, reason: str, note: str, action: str) -> None:
        """Post a Warning event."""
        self._post(regarding, EventType.WARNING, reason, note, action)

    def _is_repeated(self, uid: str, reason: str, note: str) -> bool:
        with self._lock:
            last = self._last.pop((uid, reason), None)
            self._last[(uid, reason)] = note
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)
            return last == note

    def _name(self, regarding: str) -> str:
        """As client-go names events; the number never repeats."""
        with self._lock:
            now = int(self._clock.now().timestamp() * 1_000_000_000)
            self._number = max(self._number + 1, now)
            return f"{regarding[:_NAME_MAX].rstrip('-.')}.{self._number:x}"

    def _post(
        self, regarding: ObjectReference, kind: EventType, reason: str, note: str, action: str
    ) -> None:
        if self._is_repeated(regarding.uid, reason, note):
            return
        namespace = regarding.namespace or "default"
        event = Event(
            api_version=EVENTS.api_version,
            kind=EVENTS.kind,
            metadata=ObjectMeta(name=self._name(regarding.name), namespace=namespace),
            event_time=micro_time(self._clock.now()),
            reporting_controller=self._component,
            reporting_instance=self._instance,
            action=action,
            reason=reason,
            type=kind,
            note=cut(note, _NOTE_MAX),
            regarding=regarding,
        )
        try:
            self._door.create(EVENTS, event, namespace)
        except CaptfError as problem:
            log.debug("event %s of %s not posted: %s", reason, regarding.name, problem)

"""Posting events (conditions-and-events.md: Rules for events). Best effort: it never fails a
pass."""

import logging
from hashlib import sha256
from typing import Protocol

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import AlreadyExists
from captfctl.errors import CaptfError
from captfctl.model import keys
from captfctl.model.conditions import cut
from captfctl.model.core import Event, ObjectReference
from captfctl.model.events import Note
from captfctl.model.meta import ApiObject, ObjectMeta, micro_time
from captfctl.model.resources import EVENTS, JOBS

NOTE_MAX = 512
IDENTITY_EVENT_NAMESPACE = "default"  # an identity has no namespace of its own
_NAME_MAX = 230
_INSTANCE_MAX = 128

log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Posts the events of passes."""

    def record(self, regarding: ApiObject, note: Note) -> None:
        """Post the event. Never raises."""
        ...


class NoRecorder:
    """For callers that only want to know the decision."""

    def record(self, regarding: ApiObject, note: Note) -> None:
        pass


class DoorRecorder:
    """Posts each event through a door, as `events.k8s.io/v1`."""

    def __init__(self, door: Door, clock: Clock, instance: str) -> None:
        self._door = door
        self._clock = clock
        self._instance = cut(instance, _INSTANCE_MAX)

    def record(self, regarding: ApiObject, note: Note) -> None:
        self.post(self.event(regarding, note))

    def post(self, event: Event) -> None:
        """Post an event that is made already. Never raises."""
        try:
            self._door.create(EVENTS, event, event.metadata.namespace)
        except AlreadyExists:
            log.debug("event %s was posted before", event.metadata.name)
        except CaptfError as problem:
            log.warning("event %s not posted: %s", event.reason, problem)

    def event(self, regarding: ApiObject, note: Note) -> Event:
        """The event that a note becomes."""
        namespace = regarding.metadata.namespace or IDENTITY_EVENT_NAMESPACE
        return Event(
            api_version=EVENTS.api_version,
            kind=EVENTS.kind,
            metadata=_named(regarding, note, namespace),
            event_time=micro_time(self._clock.now()),
            reporting_controller=keys.FIELD_OWNER,
            reporting_instance=self._instance,
            action=note.action,
            reason=note.reason,
            type="Warning" if note.warning else "Normal",
            note=cut(note.note, NOTE_MAX),
            regarding=_reference(regarding),
            related=_job_reference(namespace, note.job) if note.job else None,
        )


def _named(regarding: ApiObject, note: Note, namespace: str) -> ObjectMeta:
    stem = regarding.metadata.name[:_NAME_MAX]
    if not note.once:
        return ObjectMeta(generate_name=f"{stem}-", namespace=namespace)
    said = "\n".join((regarding.metadata.uid, note.reason, note.note))
    return ObjectMeta(name=f"{stem}.{sha256(said.encode()).hexdigest()[:16]}", namespace=namespace)


def _reference(obj: ApiObject) -> ObjectReference:
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind,
        namespace=obj.metadata.namespace,
        name=obj.metadata.name,
        uid=obj.metadata.uid,
    )


def _job_reference(namespace: str, name: str) -> ObjectReference:
    return ObjectReference(
        api_version=JOBS.api_version, kind=JOBS.kind, namespace=namespace, name=name
    )

"""Events of the control plane's own parts."""

from captfctl.embedded import events
from captfctl.embedded.events import Events
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import ObjectReference
from captfctl.model.resources import EVENTS
from tests.support.clock import FakeClock


def pod(number: int) -> ObjectReference:
    name = f"pod-{number}"
    return ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name=name, uid=f"uid-{number}"
    )


def test_the_same_event_of_an_object_is_posted_once_in_a_row():
    door = EmbeddedStore.in_memory(FakeClock()).door()
    posted = Events(door, FakeClock(), "part", "part-1")
    for note in ("pulling", "pulling", "pulled", "pulling"):
        posted.normal(pod(1), "Image", note, "Pull")
    posted.normal(pod(2), "Image", "pulling", "Pull")
    notes = [(e.regarding.name, e.note) for e in door.list(EVENTS, "default").items]
    assert sorted(notes) == [
        ("pod-1", "pulled"),
        ("pod-1", "pulling"),
        ("pod-1", "pulling"),
        ("pod-2", "pulling"),
    ]


def test_what_was_posted_of_objects_long_gone_is_not_remembered(monkeypatch):
    monkeypatch.setattr(events, "_REMEMBERED", 5)
    posted = Events(EmbeddedStore.in_memory(FakeClock()).door(), FakeClock(), "part", "part-1")
    for number in range(20):
        posted.normal(pod(number), "Started", "it runs", "Start")
        posted.normal(pod(0), "Started", "it runs", "Start")  # still there: not posted again
    assert len(posted._last) == 5
    assert ("uid-0", "Started") in posted._last

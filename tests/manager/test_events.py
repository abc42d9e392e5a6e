"""The queue of events that a manager posts from."""

import logging

import pytest

from captfctl.manager import events
from captfctl.manager.events import QueuedRecorder
from captfctl.model.events import EventReason
from captfctl.model.resources import EVENTS
from tests.support.cluster_world import NAMESPACE, World


@pytest.fixture
def recorder(world: World, monkeypatch):
    monkeypatch.setattr(events, "CAPACITY", 2)
    return QueuedRecorder(world.door, world.clock, "manager-1")


@pytest.fixture
def world() -> World:
    return World().populate()


def warnings(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_events_are_posted_from_the_queue(world: World, recorder: QueuedRecorder, caplog):
    for reason in (EventReason.PAUSED, EventReason.RESUMED):
        recorder.record(world.obj, reason.says("so"))
    recorder.start()
    assert recorder.stop(10)
    posted = world.door.list(EVENTS, NAMESPACE).items
    assert sorted(event.reason for event in posted) == ["Paused", "Resumed"]
    assert warnings(caplog) == []


def test_many_dropped_events_are_two_lines_of_the_log(world: World, recorder, caplog):
    for number in range(9):
        recorder.record(world.obj, EventReason.PAUSED.says(f"number {number}"))
    recorder.start()
    assert recorder.stop(10)
    assert len(world.door.list(EVENTS, NAMESPACE).items) == 2
    assert warnings(caplog) == [
        "events are dropped: 2 already wait to be posted",
        "7 events were dropped: they came faster than they were posted",
    ]

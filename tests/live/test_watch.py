"""Watches over HTTP: events as they come, and every way a watch can end."""

import threading

import pytest

from captfctl.cluster.door import EventType
from captfctl.cluster.errors import ApiError, Forbidden, Gone, Unavailable
from captfctl.cluster.live_requests import Limits
from captfctl.model.resources import CONFIG_MAPS, SECRETS
from tests.live.api import Stream, status
from tests.support.proxy import FaultProxy


def obj(name, version, **rest):
    metadata = {"name": name, "namespace": "team-a", "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, **rest}


@pytest.fixture
def stream(api):
    stream = Stream()
    api.answers.append(stream)
    yield stream
    stream.break_off()


def test_events_are_delivered_one_by_one_as_they_come(api, door, stream):
    with door.watch(CONFIG_MAPS, "team-a", resource_version="5", timeout_seconds=300) as watch:
        events = iter(watch)
        for kind, version in (
            (EventType.ADDED, 6),
            (EventType.MODIFIED, 7),
            (EventType.DELETED, 8),
        ):
            stream.send(kind.value, **obj("a", version, data={"x": str(version)}))
            event = next(events)
            assert (event.type, event.resource_version) == (kind, str(version))
            assert event.object.data == {"x": str(version)}
    (seen,) = api.seen
    assert seen.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "300",
    }


def test_a_bookmark_carries_only_its_version(door, stream):
    with door.watch(CONFIG_MAPS) as watch:
        stream.send("BOOKMARK", kind="ConfigMap", metadata={"resourceVersion": "99"})
        event = next(iter(watch))
    assert (event.type, event.object, event.resource_version) == (EventType.BOOKMARK, None, "99")


def test_lines_may_come_in_pieces_and_several_at_once(door, stream):
    def line(version):
        text = f'{{"type":"ADDED","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}\n'
        return text.encode()

    data = line(1) + line(2) + line(3)
    for cut in range(0, len(data), 50):
        stream.raw(data[cut : cut + 50])
    stream.end()
    assert [event.resource_version for event in door.watch(CONFIG_MAPS)] == ["1", "2", "3"]


def test_metadata_alone_can_be_watched(api, door, stream):
    with door.watch(SECRETS.metadata_only()) as watch:
        metadata = {"name": "s", "resourceVersion": "3"}
        stream.send("ADDED", kind="PartialObjectMetadata", metadata=metadata)
        event = next(iter(watch))
    assert (event.object.kind, event.object.metadata.name) == ("Secret", "s")
    assert api.seen[0].headers["Accept"].startswith("application/json;as=PartialObjectMetadata;")


def test_a_watch_that_the_server_ends_is_just_over(door, stream):
    stream.send("ADDED", **obj("a", 6))
    stream.end()
    assert len(list(door.watch(CONFIG_MAPS))) == 1


def test_an_expired_version_is_gone_also_when_told_inside_of_the_watch(api, door):
    api.answers.append(status(410, "Expired", "too old resource version: 1 (5)"))
    with pytest.raises(Gone):
        door.watch(CONFIG_MAPS, resource_version="1")
    stream = Stream()
    api.answers.append(stream)
    stream.send("ERROR", kind="Status", code=410, reason="Expired", message="too old")
    with pytest.raises(Gone, match="too old"):
        list(door.watch(CONFIG_MAPS, resource_version="1"))
    stream.break_off()


def test_another_error_inside_of_the_watch_is_that_error(door, stream):
    stream.send("ERROR", kind="Status", code=500, reason="InternalError", message="etcd is away")
    with pytest.raises(Unavailable, match="etcd is away"):
        list(door.watch(CONFIG_MAPS))


def test_a_watch_that_is_not_allowed_says_so_at_once(api, door):
    api.answers.append(status(403, "Forbidden", 'User "ann" cannot watch'))
    with pytest.raises(Forbidden, match="cannot watch"):
        door.watch(CONFIG_MAPS)


def test_a_connection_that_breaks_is_unavailable_after_all_that_came_before(door, stream):
    stream.send("ADDED", **obj("a", 6))
    stream.break_off()
    events = iter(door.watch(CONFIG_MAPS))
    assert next(events).resource_version == "6"
    with pytest.raises(Unavailable):
        next(events)


def test_a_reset_connection_is_unavailable(api, connect):
    stream = Stream()
    api.answers.append(stream)
    with FaultProxy("127.0.0.1", api.port) as proxy:
        door = connect(f"http://127.0.0.1:{proxy.port}")
        stream.send("ADDED", **obj("a", 6))
        events = iter(door.watch(CONFIG_MAPS))
        next(events)
        proxy.cut()
        with pytest.raises(Unavailable):
            next(events)
    stream.break_off()


def test_a_server_that_says_nothing_for_too_long_counts_as_hung(api, connect):
    door = connect(api.url, limits=Limits(connect=5, read=10, silence=0.3))
    stream = Stream()
    api.answers.append(stream)
    stream.send("ADDED", **obj("a", 6))
    events = iter(door.watch(CONFIG_MAPS))
    next(events)
    with pytest.raises(Unavailable, match="time limit"):
        next(events)
    stream.break_off()


def test_an_event_that_cannot_be_read_is_an_error_and_quotes_no_value(door, stream):
    stream.send("ADDED", **obj("a", 6, data="a-secret-value"))
    with pytest.raises(ApiError) as failed:
        list(door.watch(CONFIG_MAPS))
    assert "$.data" in str(failed.value)
    assert "a-secret-value" not in str(failed.value)


def test_closing_from_another_thread_ends_a_watch_that_waits(door, stream):
    watch = door.watch(CONFIG_MAPS)
    ended = threading.Event()
    errors = []

    def follow():
        try:
            for _ in watch:
                pass
        except Exception as error:
            errors.append(error)
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    stream.send("ADDED", **obj("a", 6))
    watch.close()
    assert ended.wait(5)
    assert errors == []


def test_a_watch_nobody_iterated_can_be_closed_twice(door, stream):
    watch = door.watch(CONFIG_MAPS)
    watch.close()
    watch.close()
    with watch:
        pass


def test_leaving_the_block_ends_the_connection(api, door, stream):
    stream.send("ADDED", **obj("a", 6))
    with door.watch(CONFIG_MAPS) as watch:
        for _ in watch:
            break
    assert list(watch) == []

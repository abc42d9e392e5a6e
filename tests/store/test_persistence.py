"""The store on disk: what survives, who may open it, what a broken disk does."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.errors import Gone, NotFound, Unavailable
from captfctl.embedded.store import EmbeddedStore, ListOptions, WatchOptions
from captfctl.embedded.store.journal import FILE
from captfctl.errors import EnvironmentFault
from captfctl.model.resources import CRDS
from tests.contract import widgets
from tests.store.conftest import secret


def open_store(folder: Path, **options) -> EmbeddedStore:
    return EmbeddedStore.open(folder, SystemClock(), **options)


def secrets_of(store):
    return store.registry.find("", "v1", "secrets")


def test_everything_is_there_after_a_restart(tmp_path):
    store = open_store(tmp_path)
    served = secrets_of(store)
    store.create(served, secret("a", labels={"l": "v"}), "default")
    store.create(served, secret("b"), "default")
    store.delete(served, "b", "default")
    before, version = store.get(served, "a", "default"), store.resource_version
    store.close()

    store = open_store(tmp_path)
    served = secrets_of(store)
    assert store.get(served, "a", "default") == before
    with pytest.raises(NotFound):
        store.get(served, "b", "default")
    assert store.resource_version == version
    selected = store.list(served, "default", ListOptions(labels="l=v"))
    assert selected.items == [before]
    store.close()


def test_versions_go_on_where_they_were_even_after_a_delete(tmp_path):
    store = open_store(tmp_path)
    store.create(secrets_of(store), secret("a"), "default")
    store.delete(secrets_of(store), "a", "default")
    last = int(store.resource_version)
    store.close()
    store = open_store(tmp_path)
    written = store.create(secrets_of(store), secret("a"), "default")
    assert int(written.resource_version) == last + 1
    store.close()


def test_versions_of_an_earlier_process_are_gone_but_the_latest(tmp_path):
    store = open_store(tmp_path)
    old = store.create(secrets_of(store), secret("a"), "default").resource_version
    latest = store.create(secrets_of(store), secret("b"), "default").resource_version
    store.close()
    store = open_store(tmp_path)
    served = secrets_of(store)
    with pytest.raises(Gone):
        store.watch(served, "default", WatchOptions(resource_version=old))
    with store.watch(served, "default", WatchOptions(resource_version=latest)) as watch:
        store.create(served, secret("c"), "default")
        assert [event.resource_version for event in watch.poll()] == [store.resource_version]
    store.close()


def test_definitions_are_served_again_after_a_restart(tmp_path):
    store = open_store(tmp_path)
    definition = widgets.definition(
        "restart.test",
        {"type": "object", "properties": {"color": {"type": "string"}}},
        selectableFields=[{"jsonPath": ".spec.color"}],
    )
    store.door().create(CRDS, definition)
    served = store.registry.find("restart.test", "v1", "widgets")
    store.create(served, widgets.make("a", {"color": "red"}), "default")
    store.close()

    store = open_store(tmp_path)
    served = store.registry.find("restart.test", "v1", "widgets")
    found = store.list(served, "default", ListOptions(fields="spec.color=red"))
    assert len(found.items) == 1
    store.close()


def test_a_definitions_removal_goes_on_after_a_restart(tmp_path):
    store = open_store(tmp_path)
    door = store.door()
    door.create(CRDS, widgets.definition("restart.test"))
    served = store.registry.find("restart.test", "v1", "widgets")
    store.create(served, widgets.make("a", finalizers=["x.test/hold"]), "default")
    door.delete(CRDS, "widgets.restart.test")
    store.close()

    store = open_store(tmp_path)
    served = store.registry.find("restart.test", "v1", "widgets")

    def release(current):
        del current["metadata"]["finalizers"]
        return current

    store.modify(served, "a", "default", release)
    with pytest.raises(NotFound):
        store.door().get(CRDS, "widgets.restart.test")
    store.close()


def test_a_directory_has_one_process_at_a_time(tmp_path):
    store = open_store(tmp_path)
    with pytest.raises(EnvironmentFault) as caught:
        open_store(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "in use" in caught.value.what
    assert caught.value.do
    store.close()
    open_store(tmp_path).close()


def test_a_closed_store_says_so(tmp_path):
    store = open_store(tmp_path)
    served = secrets_of(store)
    store.close()
    store.close()
    for request in (
        lambda: store.get(served, "a", "default"),
        lambda: store.list(served),
        lambda: store.watch(served),
        lambda: store.create(served, secret("a"), "default"),
    ):
        with pytest.raises(Unavailable):
            request()


def test_the_files_are_for_their_owner_only(tmp_path):
    folder = tmp_path / "data"
    store = open_store(folder)
    store.create(secrets_of(store), secret("a"), "default")
    assert folder.stat().st_mode & 0o077 == 0
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    store.close()


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    with pytest.raises(EnvironmentFault) as caught:
        open_store(obstacle / "data")
    assert str(obstacle / "data") in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"this is no database at all, not even nearly" * 9, b"\0" * 4096]
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(EnvironmentFault) as caught:
        open_store(tmp_path)
    assert FILE in str(caught.value)
    assert caught.value.do
    assert (tmp_path / FILE).read_bytes() == content


def test_a_damaged_page_is_noticed_when_the_store_is_opened(tmp_path):
    store = open_store(tmp_path)
    for number in range(200):
        store.create(secrets_of(store), secret(f"s{number}", "x" * 2000), "default")
    store.close()
    path = tmp_path / FILE
    content = bytearray(path.read_bytes())
    assert len(content) > 100_000
    content[40_000:60_000] = b"\xff" * 20_000
    path.write_bytes(content)
    with pytest.raises(EnvironmentFault):
        open_store(tmp_path)


def test_an_object_that_cannot_be_read_is_named(tmp_path):
    store = open_store(tmp_path)
    store.create(secrets_of(store), secret("broken"), "default")
    store.close()
    database = sqlite3.connect(tmp_path / FILE)
    database.execute("UPDATE objects SET body = '{' WHERE key = 'default/broken'")
    database.commit()
    database.close()
    with pytest.raises(EnvironmentFault) as caught:
        open_store(tmp_path)
    assert "secrets/default/broken" in str(caught.value)


def test_a_store_of_another_release_is_refused(tmp_path):
    open_store(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(EnvironmentFault) as caught:
        open_store(tmp_path)
    assert "99" in str(caught.value)


@pytest.fixture
def small_files():
    """No file may grow beyond 400 kB meanwhile: what a full disk looks like to SQLite."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_the_write_and_keeps_the_rest(tmp_path, small_files):
    store = open_store(tmp_path)
    served = secrets_of(store)
    stored = 0
    with pytest.raises(Unavailable) as caught:
        while True:
            store.create(served, secret(f"s{stored:03}", "x" * 20_000), "default")
            stored += 1
    assert not caught.value.outcome_unknown
    assert str(tmp_path) in str(caught.value)
    assert stored > 0
    assert len(store.list(served).items) == stored
    with pytest.raises(NotFound):
        store.get(served, f"s{stored:03}", "default")
    version = int(store.resource_version)
    store.close()

    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store = open_store(tmp_path)
    assert len(store.list(secrets_of(store)).items) == stored
    written = store.create(secrets_of(store), secret("after"), "default")
    assert int(written.resource_version) == version + 1
    store.close()


def test_a_disk_too_full_to_begin_with_is_named(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(EnvironmentFault) as caught:
            open_store(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(tmp_path) in str(caught.value)
    assert "disk" in caught.value.do
    open_store(tmp_path).close()


def test_writing_goes_on_when_there_is_room_again(tmp_path, small_files):
    store = open_store(tmp_path)
    served = secrets_of(store)
    with pytest.raises(Unavailable):
        for number in range(100):
            store.create(served, secret(f"s{number}", "x" * 20_000), "default")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.create(served, secret("after", "x" * 20_000), "default")
    count = len(store.list(served).items)
    store.close()
    store = open_store(tmp_path)
    assert len(store.list(secrets_of(store)).items) == count
    store.close()


def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path):
    """Again and again on the same directory, at whatever point the kill hits."""
    expected: dict[str, str] = {}
    highest = 0
    for round_ in range(4):
        for name, version in _write_until_killed(tmp_path, f"r{round_}", after=23 + 40 * round_):
            assert int(version) > highest
            highest = int(version)
            if name.startswith("-"):
                expected.pop(name[1:], None)
            else:
                expected[name] = version
        expected, highest = _assert_all_there(tmp_path, expected, highest)


def _write_until_killed(folder: Path, prefix: str, after: int) -> list[tuple[str, str]]:
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.store.writer", str(folder), prefix],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(after)]
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    # The last line may be cut off: what was printed whole was acknowledged.
    return [tuple(line.split()) for line in lines if line.endswith("\n")]


def _assert_all_there(
    folder: Path, expected: dict[str, str], highest: int
) -> tuple[dict[str, str], int]:
    """What is there now, and the latest version."""
    store = open_store(folder)
    served = secrets_of(store)
    listed = store.door().list(served.resource, "default").items
    found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed}
    # The write that the kill interrupted may have taken place, but no other.
    assert len(set(found) ^ set(expected)) <= 1
    assert {name: found.get(name, version) for name, version in expected.items()} == expected
    assert int(store.resource_version) >= highest
    latest = store.create(served, {"metadata": {"generateName": "after-"}}, "default")
    assert int(latest.resource_version) > highest
    name = msgspec.json.decode(latest.body)["metadata"]["name"]
    store.close()
    return found | {name: latest.resource_version}, int(latest.resource_version)

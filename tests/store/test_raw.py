"""What the API server asks of the store beyond the door."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.cluster.door import EventType
from captfctl.cluster.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
)
from captfctl.embedded.store import (
    DeleteOptions,
    EmbeddedStore,
    FieldValidation,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from captfctl.embedded.store.expiry import EventExpiry
from captfctl.embedded.store.journal import SqliteJournal
from captfctl.model.resources import CRDS
from tests.contract import widgets
from tests.store.conftest import secret
from tests.support.clock import FakeClock

DRY = WriteOptions(dry_run=True)
STRICT = WriteOptions(field_validation=FieldValidation.STRICT)
WARN = WriteOptions(field_validation=FieldValidation.WARN)

decode = msgspec.json.decode


@pytest.fixture
def widget(store):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    store.door().create(CRDS, widgets.definition("raw.test", schema))
    return store.registry.find("raw.test", "v1", "widgets")


def test_a_dry_run_answers_and_changes_nothing(store, secrets):
    version = store.resource_version
    made = decode(store.create(secrets, secret("a"), "default", DRY).body)
    assert made["metadata"]["uid"]
    assert store.resource_version == version
    with pytest.raises(NotFound):
        store.get(secrets, "a", "default")
    store.create(secrets, secret("a"), "default")
    with pytest.raises(AlreadyExists):
        store.create(secrets, secret("a"), "default", DRY)
    with pytest.raises(NotFound):
        store.create(secrets, secret("a"), "absent", DRY)

    def change(current):
        return current | {"stringData": {"k": "new"}}

    before = store.get(secrets, "a", "default")
    answer = decode(store.modify(secrets, "a", "default", change, DRY).body)
    assert answer["data"] != decode(before)["data"]
    assert store.get(secrets, "a", "default") == before
    assert store.delete(secrets, "a", "default", DeleteOptions(dry_run=True)).gone
    assert store.get(secrets, "a", "default") == before


def test_strict_names_every_unknown_field(store, widget):
    wanted = widgets.make("a", {"a": "1", "b": 2}, color="red") | {"stray": 1}
    with pytest.raises(BadRequest) as caught:
        store.create(widget, wanted, "default", STRICT)
    for field in ("spec.b", "metadata.color", "stray"):
        assert f'unknown field "{field}"' in str(caught.value)


def test_warnings_name_what_was_dropped(store, widget, secrets):
    written = store.create(widget, widgets.make("a", {"b": 2}), "default", WARN)
    assert written.warnings == ('unknown field "spec.b"',)
    assert "b" not in decode(written.body)["spec"]
    written = store.create(secrets, secret("a") | {"dataa": {}}, "default", WARN)
    assert written.warnings == ('unknown field "dataa"',)
    assert store.create(widget, widgets.make("b", {"b": 2}), "default").warnings == ()


def test_strict_goes_deep_into_built_in_kinds(store):
    pods = store.registry.find("", "v1", "pods")
    container = {"name": "a", "image": "i", "imagee": "j", "resources": {"limit": {}}}
    with pytest.raises(BadRequest) as caught:
        store.create(pods, widgets.make("a", {"containers": [container]}), "default", STRICT)
    assert 'unknown field "spec.containers[0].imagee"' in str(caught.value)
    assert 'unknown field "spec.containers[0].resources.limit"' in str(caught.value)


def test_a_wrong_type_in_a_built_in_kind_is_named_by_its_path(store):
    jobs = store.registry.find("batch", "v1", "jobs")
    with pytest.raises(BadRequest) as caught:
        store.create(jobs, widgets.make("a", {"backoffLimit": "six"}), "default")
    assert "cannot unmarshal string into field spec.backoffLimit" in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("apiVersion", "v2"), ("kind", "ConfigMap")])
def test_the_type_of_the_data_must_be_that_of_the_request(store, secrets, field, value):
    with pytest.raises(BadRequest) as caught:
        store.create(secrets, secret("a") | {field: value}, "default")
    assert value in str(caught.value)


def test_the_name_in_the_data_must_be_that_of_the_request(store, secrets):
    store.create(secrets, secret("a"), "default")
    with pytest.raises(BadRequest):
        store.modify(secrets, "a", "default", lambda _: secret("b"))
    with pytest.raises(BadRequest):
        store.create(secrets, secret("c", namespace="other"), "default")


def test_modify_creates_when_asked_to(store, secrets):
    with pytest.raises(NotFound):
        store.modify(secrets, "a", "default", lambda _: secret("a"))
    written = store.modify(secrets, "a", "default", lambda _: secret("a"), create=True)
    assert written.created
    again = store.modify(
        secrets, "a", "default", lambda now: now | {"stringData": {"k": "2"}}, create=True
    )
    assert not again.created
    with pytest.raises(Conflict):
        gone = secret("b", uid="00000000-0000-4000-8000-000000000000")
        store.modify(secrets, "b", "default", lambda _: gone, create=True)


def test_modify_repeats_what_another_write_overtook(store, secrets):
    store.create(secrets, secret("a"), "default")
    attempts = []

    def change(current):
        attempts.append(current["metadata"]["resourceVersion"])
        if len(attempts) == 1:
            store.modify(secrets, "a", "default", lambda now: now | {"stringData": {"other": "x"}})
        return current | {"stringData": {"mine": "x"}}

    written = decode(store.modify(secrets, "a", "default", change).body)
    assert len(attempts) == 2
    assert set(written["data"]) == {"k", "mine", "other"}


def test_what_the_change_raises_passes_through(store, secrets):
    store.create(secrets, secret("a"), "default")

    class Oops(Exception):
        pass

    def change(_):
        raise Oops

    with pytest.raises(Oops):
        store.modify(secrets, "a", "default", change)


def test_field_managers_are_kept_by_who_does_not_know_of_them(store, secrets):
    managers = [{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1"}]
    managers[0]["fieldsV1"] = {"f:data": {"f:k": {}}}
    made = decode(store.create(secrets, secret("a", managedFields=managers), "default").body)
    assert made["metadata"]["managedFields"] == managers

    def replace(current):
        current["metadata"].pop("managedFields")
        return current | {"stringData": {"k": "2"}}

    kept = decode(store.modify(secrets, "a", "default", replace).body)
    assert kept["metadata"]["managedFields"] == managers

    def drop(current):
        current["metadata"]["managedFields"] = []
        return current

    assert (
        "managedFields" not in decode(store.modify(secrets, "a", "default", drop).body)["metadata"]
    )


def test_many_are_deleted_by_selection(store, secrets):
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        store.create(secrets, secret(name, labels={"l": label}), "default")
    page = store.delete_collection(secrets, "default", ListOptions(labels="l=x"))
    assert [decode(item)["metadata"]["name"] for item in page.items] == ["a", "c"]
    left = store.list(secrets, "default").items
    assert [decode(item)["metadata"]["name"] for item in left] == ["b"]


def test_a_collection_is_deleted_in_one_transaction(tmp_path, clock, monkeypatch):
    writes = []
    real = SqliteJournal.write

    def write(self, storage, rows):
        writes.append(len(rows))
        real(self, storage, rows)

    store = EmbeddedStore.open(tmp_path / "store", clock)
    secrets = store.registry.find("", "v1", "secrets")
    for number in range(50):
        kept = {"finalizers": ["example.com/kept"]} if number % 10 == 0 else {}
        store.create(secrets, secret(f"s{number:02}", **kept), "default")
    watch = store.watch(secrets, "default", WatchOptions(resource_version=store.resource_version))
    monkeypatch.setattr(SqliteJournal, "write", write)

    page = store.delete_collection(secrets, "default")

    assert writes == [50]
    assert len(page.items) == 50
    events = watch.poll()
    assert [event.type for event in events].count(EventType.DELETED) == 45
    versions = [int(event.resource_version) for event in events]
    assert versions == list(range(versions[0], versions[0] + 50))
    store.close()
    again = EmbeddedStore.open(tmp_path / "store", clock)
    left = [decode(item)["metadata"] for item in again.list(secrets, "default").items]
    assert [metadata["name"] for metadata in left] == ["s00", "s10", "s20", "s30", "s40"]
    assert all("deletionTimestamp" in metadata for metadata in left)
    assert int(again.resource_version) == versions[-1]
    again.close()


def test_a_dry_run_of_a_collections_deletion_deletes_nothing(store, secrets):
    store.create(secrets, secret("a"), "default")
    store.delete_collection(secrets, "default", options=DeleteOptions(dry_run=True))
    assert len(store.list(secrets, "default").items) == 1


def test_what_may_not_be_deleted_stays_and_those_before_it_go(store):
    namespaces = store.registry.find("", "v1", "namespaces")
    store.create(namespaces, {"metadata": {"name": "a"}})
    with pytest.raises(Forbidden):
        store.delete_collection(namespaces)
    left = {decode(item)["metadata"]["name"]: item for item in store.list(namespaces).items}
    assert b"deletionTimestamp" in left["a"]
    assert b"deletionTimestamp" not in left["default"]


def test_an_exact_version_can_be_listed_while_it_is_kept(store, secrets):
    store.create(secrets, secret("a"), "default")
    old = store.resource_version
    store.create(secrets, secret("b"), "default")
    store.delete(secrets, "a", "default")
    exact = ListOptions(resource_version=old, resource_version_match="Exact")
    found = store.list(secrets, "default", exact)
    assert [decode(item)["metadata"]["name"] for item in found.items] == ["a"]
    assert found.resource_version == old
    store.compact()
    with pytest.raises(Gone):
        store.list(secrets, "default", exact)


def test_a_watch_list_ends_its_beginning_with_a_marked_bookmark(store, secrets):
    store.create(secrets, secret("a"), "default")
    options = WatchOptions(send_initial_events=True, bookmarks=True)
    with store.watch(secrets, "default", options) as watch:
        first, end = watch.poll()
        assert first.type is EventType.ADDED
        assert end.type is EventType.BOOKMARK
        metadata = decode(end.body)["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == store.resource_version


def test_bookmarks_come_while_nothing_happens(store, secrets, clock):
    watch = store.watch(secrets, "default", WatchOptions(bookmarks=True, timeout_seconds=200))
    store.create(store.registry.find("", "v1", "configmaps"), widgets.make("other"), "default")
    events = iter(watch)
    found = []
    import threading

    thread = threading.Thread(target=lambda: found.append(next(events)))
    thread.start()
    clock.run_until(lambda: bool(found), step=10)
    thread.join()
    assert found[0].type is EventType.BOOKMARK
    assert found[0].resource_version == store.resource_version
    watch.close()


def test_a_watcher_that_lags_behind_the_log_is_told_so(clock):
    store = EmbeddedStore.in_memory(clock, log_limit=10)
    secrets = store.registry.find("", "v1", "secrets")
    slow = store.watch(secrets, "default")
    fast = store.watch(secrets, "default")
    seen = 0
    for number in range(30):
        store.create(secrets, secret(f"s{number}"), "default")
        seen += len(fast.poll())
    assert seen == 30
    with pytest.raises(Gone):
        slow.poll()
    assert slow.ended
    store.close()


@given(sizes=st.lists(st.integers(0, 2_000), min_size=1, max_size=60))
def test_the_change_log_is_bounded_by_bytes_and_ends_with_the_newest_change(sizes):
    store = EmbeddedStore.in_memory(FakeClock(), log_bytes=10_000)
    secrets = store.registry.find("", "v1", "secrets")
    (collection,) = [store._engine.collection(secrets)]
    for number, size in enumerate(sizes):
        store.create(secrets, secret(f"s{number}", "x" * size), "default")
        assert collection.logged == sum(entry.size for entry in collection.log)
        assert collection.logged >= sum(len(entry.after.body) for entry in collection.log)
        assert collection.logged <= 12_000 or len(collection.log) <= 12
        assert len(collection.log) >= min(number + 1, 12)
        assert collection.log[-1].version == int(store.resource_version)
    since = str(collection.floor)
    with store.watch(secrets, "default", WatchOptions(resource_version=since)) as watch:
        assert len(watch.poll()) == len(collection.log)
    if collection.dropped:
        with pytest.raises(Gone):
            store.watch(
                secrets, "default", WatchOptions(resource_version=str(collection.floor - 1))
            )
    store.close()


def test_other_kinds_changes_do_not_age_a_watch(clock):
    store = EmbeddedStore.in_memory(clock, log_limit=10)
    secrets = store.registry.find("", "v1", "secrets")
    since = store.create(secrets, secret("a"), "default").resource_version
    maps = store.registry.find("", "v1", "configmaps")
    for number in range(50):
        store.create(maps, widgets.make(f"m{number}"), "default")
    with store.watch(secrets, "default", WatchOptions(resource_version=since)) as watch:
        assert watch.poll() == []
    store.close()


def test_a_wake_call_says_that_there_is_something_to_poll(store, secrets):
    calls = []
    with store.watch(secrets, "default", wake=lambda: calls.append(1)) as watch:
        assert watch.poll() == []
        assert calls == []
        store.create(secrets, secret("a"), "default")
        assert calls
        assert [event.type for event in watch.poll()] == [EventType.ADDED]
        assert watch.poll() == []


def test_closing_the_store_ends_its_watches(store, secrets):
    watch = store.watch(secrets, "default")
    store.close()
    assert list(watch) == []
    assert watch.ended


def test_a_removed_definition_ends_its_watches(store, widget):
    store.create(widget, widgets.make("a"), "default")
    watch = store.watch(widget, "default")
    store.door().delete(CRDS, "widgets.raw.test")
    assert [event.type for event in watch] == [EventType.ADDED, EventType.DELETED]


def test_dependents_are_found_by_their_owners_uid(store, secrets):
    owner = decode(store.create(secrets, secret("owner"), "default").body)["metadata"]
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": owner["uid"]}
    store.create(secrets, secret("a", ownerReferences=[reference]), "default")
    maps = store.registry.find("", "v1", "configmaps")
    store.create(maps, widgets.make("b", ownerReferences=[reference]), "default")

    def found():
        return [(served.resource.plural, *rest) for served, *rest in store.dependents(owner["uid"])]

    assert found() == [("configmaps", "default", "b"), ("secrets", "default", "a")]
    store.delete(maps, "b", "default")

    def disown(current):
        current["metadata"].pop("ownerReferences")
        return current

    store.modify(secrets, "a", "default", disown)
    assert found() == []


def test_events_are_gone_for_a_reader_also_while_nothing_happens(store, clock):
    events = store.registry.find("", "v1", "events")
    store.create(events, event("e"), "default")
    clock.advance(3599)
    assert len(store.list(events, "default").items) == 1
    clock.advance(2)
    assert store.list(events, "default").items == []


def test_a_restart_does_not_prolong_the_life_of_events(tmp_path, clock):
    store = EmbeddedStore.open(tmp_path / "store", clock)
    events = store.registry.find("", "v1", "events")
    store.create(events, event("e"), "default")
    store.close()
    clock.advance(1800)
    store = EmbeddedStore.open(tmp_path / "store", clock)
    assert len(store.list(events, "default").items) == 1
    clock.advance(1801)
    assert store.list(events, "default").items == []
    store.close()


def event(name):
    regarding = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": regarding, "reason": "r", "message": "m"}


def test_events_are_gone_an_hour_after_their_last_change(store, clock):
    events = store.registry.find("", "v1", "events")
    about = {"kind": "Secret", "name": "s", "namespace": "default"}

    def event(name):
        return widgets.make(name) | {"involvedObject": about, "reason": "R", "message": "m"}

    store.create(events, event("old"), "default")
    store.create(events, event("renewed"), "default")
    clock.advance(1800)
    store.modify(events, "renewed", "default", lambda now: now | {"count": 2})
    clock.advance(1801)
    store.create(events, event("new"), "default")
    left = [decode(item)["metadata"]["name"] for item in store.list(events, "default").items]
    assert left == ["new", "renewed"]


def test_of_very_many_events_the_newest_stay(clock):
    store = EmbeddedStore.in_memory(clock)
    store._expiry = EventExpiry(store._engine, most=100)
    events = store.registry.find("", "v1", "events")

    def names():
        return [decode(item)["metadata"]["name"] for item in store.list(events, "default").items]

    for number in range(100):
        store.create(events, event(f"e{number:03}"), "default")
    store.modify(events, "e000", "default", lambda now: now | {"count": 2})
    for number in range(100, 400):
        store.create(events, event(f"e{number:03}"), "default")
        assert len(store.list(events, "default").items) <= 105
        if number == 150:
            kept = [
                decode(item)["metadata"]["name"] for item in store.list(events, "default").items
            ]
            assert "e000" in kept  # it changed after those that are older
            assert "e001" not in kept
    left = [decode(item)["metadata"]["name"] for item in store.list(events, "default").items]
    assert 100 <= len(left) == len(store._expiry._due)
    assert left == [f"e{number:03}" for number in range(400 - len(left), 400)]
    store.close()


def test_two_definitions_do_not_share_a_name(store):
    door = store.door()
    door.create(CRDS, widgets.definition("raw.test"))
    other = widgets.definition("raw.test")
    other.metadata.name = "gadgets.raw.test"
    other.spec["names"] = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["widget"]}
    made = door.create(CRDS, other)
    conditions = {c["type"]: c for c in made.status["conditions"]}
    assert conditions["NamesAccepted"]["status"] == "False"
    assert "widgets.raw.test" in conditions["NamesAccepted"]["message"]
    with pytest.raises(NotFound):
        store.registry.find("raw.test", "v1", "gadgets")


def test_a_webhook_conversion_is_not_pretended(store):
    definition = widgets.definition("raw.test")
    definition.spec["conversion"] = {"strategy": "Webhook"}
    with pytest.raises(Invalid) as caught:
        store.door().create(CRDS, definition)
    assert [cause.field for cause in caught.value.causes] == ["spec.conversion.strategy"]


def test_the_same_draws_give_the_same_uids_and_names(clock):
    import random

    def run():
        store = EmbeddedStore.in_memory(clock, chance=random.Random(7))
        secrets = store.registry.find("", "v1", "secrets")
        wanted = {"metadata": {"generateName": "run-"}}
        return decode(store.create(secrets, wanted, "default").body)["metadata"]

    assert run() == run()


def test_a_subresource_can_be_answered_by_others(store, secrets):
    store.create(secrets, secret("a"), "default")
    with pytest.raises(NotFound):
        store.create_subresource(secrets, "a", "default", "token", {})
    store.serve_subresource("secrets", "token", lambda name, namespace, body: body | {"by": name})
    answer = store.create_subresource(secrets, "a", "default", "token", {"x": 1})
    assert answer == {"x": 1, "by": "a"}
    with pytest.raises(NotFound):
        store.create_subresource(secrets, "b", "default", "token", {})


def test_refusals_do_not_quote_what_a_template_holds(store):
    jobs = store.registry.find("batch", "v1", "jobs")
    variable = {"name": "PASSWORD", "value": "hunter2"}
    container = {"name": "a", "image": "i", "env": [variable]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    store.create(jobs, widgets.make("a", {"template": {"spec": pod}}), "default")

    def change(current):
        current["spec"]["template"]["spec"]["containers"][0]["image"] = "j"
        return current

    with pytest.raises(Invalid) as caught:
        store.modify(jobs, "a", "default", change)
    assert "hunter2" not in str(caught.value)

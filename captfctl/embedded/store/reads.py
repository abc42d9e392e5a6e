"""Lists in pages with their continue tokens, and the start of watches."""

import base64
import binascii
import re
from collections.abc import Callable

import msgspec

from captfctl.cluster.door import EventType
from captfctl.cluster.errors import BadRequest, Gone
from captfctl.embedded.store.collection import Collection, Record
from captfctl.embedded.store.engine import Engine
from captfctl.embedded.store.registry import Served
from captfctl.embedded.store.requests import ListOptions, RawEvent, RawPage, WatchOptions
from captfctl.embedded.store.selection import Selection, select
from captfctl.embedded.store.violations import VersionTooLarge, too_old
from captfctl.embedded.store.watch import Lens, RawWatch, Source, bookmark
from captfctl.embedded.store.writes import body_of

_VERSION = re.compile(r"[0-9]{1,20}")
_EXACT = "Exact"


def list_page(engine: Engine, served: Served, namespace: str, options: ListOptions) -> RawPage:
    """What `options` select, as of one version, up to their limit.

    Raises `BadRequest`, and `Gone` for a version or a continue token that is too old.
    """
    selection = _selection(served, namespace, options.labels, options.fields)
    version, after = _start(engine, options)
    collection = engine.collection(served)
    with engine.lock:
        engine.require_open()
        if version is None:
            version = engine.version
            records = collection.slice(selection.namespace, after)
        else:
            records = _at(engine, collection, version, selection.namespace, after)
    return _page(served, selection, records, version, options.limit)


def _selection(served: Served, namespace: str, labels: str, fields: str) -> Selection:
    scope = namespace if served.resource.namespaced else ""
    return select(scope, labels, fields, served.selectable)


def _start(engine: Engine, options: ListOptions) -> tuple[int | None, str]:
    """The version to list, None for the latest, and the key to go on after."""
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        found = parse_token(options.continue_token)
        return found.version, found.after
    wanted = reached_version(engine, options.resource_version)
    exact = options.resource_version_match == _EXACT
    return (wanted if exact else None), ""


def reached_version(engine: Engine, text: str) -> int:
    """The version that a reader wants to be reached; 0 for none.

    Raises `BadRequest`, and `VersionTooLarge` when it is not reached.
    """
    version = parse_version(text)
    if version > engine.version:
        raise VersionTooLarge(version, engine.version)
    return version


def parse_version(text: str) -> int:
    """0 for none. Raises `BadRequest`."""
    if not text:
        return 0
    if not _VERSION.fullmatch(text):
        raise BadRequest(f'resourceVersion: Invalid value: "{text}": it must be a whole number')
    return int(text)


def _at(
    engine: Engine, collection: Collection, version: int, namespace: str, after: str
) -> list[Record]:
    if version < collection.floor:
        if after:
            raise Gone(
                "the continue token is too old for a consistent list",
                do="start the list again without it",
            )
        raise too_old(version, collection.floor)
    if version > engine.version:  # of a continue token
        raise VersionTooLarge(version, engine.version)
    return collection.at(version, namespace, after)


def _page(
    served: Served, selection: Selection, records: list[Record], version: int, limit: int
) -> RawPage:
    if not selection.everything:
        records = [record for record in records if selection.matches(record)]
    page = records[:limit] if limit > 0 else records
    more = len(records) - len(page)
    return RawPage(
        items=[body_of(served, record) for record in page],
        resource_version=str(version),
        continue_token=token(version, page[-1].key) if more else "",
        # With a selector the real server does not know how many are left, and says nothing.
        remaining=more if more and selection.everything else None,
    )


def start_watch(
    engine: Engine,
    served: Served,
    namespace: str,
    options: WatchOptions,
    wake: Callable[[], None] | None,
) -> RawWatch:
    """Changes after the version that `options` name; without one, first what there is now.

    `wake`: see `RawWatch`. Raises `BadRequest`, and `Gone` for a version that is too old.
    """
    selection = _selection(served, namespace, options.labels, options.fields)
    lens = Lens(served.resource.kind, served.view, selection)
    since = parse_version(options.resource_version)
    collection = engine.collection(served)
    with engine.lock:
        engine.require_open()
        initial: list[RawEvent] = []
        if not since or options.send_initial_events:
            reached_version(engine, options.resource_version)
            initial = _existing(served, selection, collection)
            if options.send_initial_events and options.bookmarks:
                initial.append(bookmark(lens, engine.version, initial_end=True))
            since = engine.version
        elif since < collection.floor:
            raise too_old(since, collection.floor)
        return RawWatch(
            Source(collection, engine.lock, lambda: engine.version, engine.clock),
            lens,
            initial=initial,
            place=collection.place(since),
            position=since,
            timeout=options.timeout_seconds,
            bookmarks=options.bookmarks,
            wake=wake,
        )


def _existing(served: Served, selection: Selection, collection: Collection) -> list[RawEvent]:
    return [
        RawEvent(EventType.ADDED, body_of(served, record), str(record.version))
        for record in collection.slice(selection.namespace)
        if selection.matches(record)
    ]


def dependents(engine: Engine, uid: str) -> list[tuple[Served, str, str]]:
    """Every object with an owner reference to `uid`: resource, namespace, name."""
    with engine.lock:
        engine.require_open()
        found = list(engine.owners.of(uid))
    result = []
    for storage, key in found:
        namespace, _, name = key.rpartition("/")
        if versions := engine.registry.of_storage(storage):
            result.append((versions[0], namespace, name))
    return result


class Continuation(msgspec.Struct, rename={"version": "rv", "after": "start"}):
    """The next page starts after key `after`, in the collection as it was at `version`."""

    v: str
    version: int
    after: str


_FORM = "meta.k8s.io/v1"


def token(version: int, after: str) -> str:
    """The token of a page that follows the object at `after`."""
    body = msgspec.json.encode(Continuation(_FORM, version, after))
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def parse_token(text: str) -> Continuation:
    """Raises `BadRequest`."""
    try:
        body = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(body, type=Continuation)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        found = None
    if found is None or found.v != _FORM or found.version < 1:
        raise BadRequest("continue key is not valid", do="start the list again without it")
    return found

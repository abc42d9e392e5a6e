"""A cache of one resource's objects that follows the API server
(manager.md: Caches and workers)."""

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from captfctl.backoff import Backoff
from captfctl.clock import Clock
from captfctl.cluster.door import Door, EventType, Page, Watch, WatchEvent
from captfctl.cluster.errors import ApiError, Gone
from captfctl.controller.cache import Cache, Change, Index, Key
from captfctl.model.meta import ApiObject
from captfctl.model.resource import Resource

T = TypeVar("T", bound=ApiObject)

PAGE_SIZE = 500
"""Objects per list request: client-go's, small enough for the server to answer quickly."""

WATCH_SECONDS = (20, 35)
"""A watch asks the server to end it after a time drawn from this range: less than the silence after
which a server counts as hung (`cluster.live_requests.Limits`), for an API server may have nothing
to say. What was not heard of for a minute is known to be broken then. Servers behind one address
get their share of watches, too."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds between attempts. The longest is what a manager may lag behind a server that is back."""

WORTHWHILE = 1.0
"""Seconds, from the request, after which a watch that the server ended is begun again without a
pause. One that never lasts would otherwise be asked for in a loop."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """What to call on changes, from the informer's threads, never two calls at a time.

    Handlers share the objects: do not change them. A resync calls `on_update` with one object
    twice.
    """

    on_add: Callable[[T], None] | None = None
    on_update: Callable[[T, T], None] | None = None
    on_delete: Callable[[T], None] | None = None

    def call(self, change: Change[T]) -> None:
        """Tell of `change`; an error of the handler is logged and ends nothing."""
        try:
            if change.old is not None and change.new is not None:
                if self.on_update is not None:
                    self.on_update(change.old, change.new)
            elif change.new is not None:
                if self.on_add is not None:
                    self.on_add(change.new)
            elif change.old is not None and self.on_delete is not None:
                self.on_delete(change.old)
        except Exception:
            log.exception("a handler of changes failed")


class Informer(Generic[T]):
    """Lists `resource`, then watches it, in a thread of its own, until stopped.

    A broken watch goes on from the last version seen; when the server has forgotten that version,
    the list is read again and what is gone from it is reported as deleted. Objects that are read
    belong to the reader; handlers share theirs.

    `slim` takes what nobody reads off an object before it is kept. `resync_period` in seconds; 0:
    no resync.
    """

    def __init__(
        self,
        door: Door,
        resource: Resource[T],
        clock: Clock,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        slim: Callable[[T], T] | None = None,
        resync_period: float = 0.0,
        rng: random.Random | None = None,
    ) -> None:
        self.resource = resource
        self._door = door
        self._clock = clock
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._cache: Cache[T] = Cache(resource, indexes)
        self._slim = slim
        self._resync_period = resync_period
        self._rng = rng or random.Random()  # noqa: S311 - spreads requests, guards nothing
        self._backoff = Backoff(self._rng, base=FIRST_PAUSE, maximum=LONGEST_PAUSE)
        self._dispatch = threading.RLock()  # held while the cache changes and handlers hear of it
        self._handlers: list[Handler[T]] = []
        self._version = ""  # empty: the list must be read
        self._heard_at = self._tried_at = clock.monotonic()
        self._synced = threading.Event()
        self._stop = threading.Event()
        self._watch_lock = threading.Lock()
        self._watch: Watch[T] | None = None
        self._last_error: ApiError | None = None
        self._threads = [threading.Thread(target=self._run, name=self._title("watch"), daemon=True)]
        if resync_period > 0:
            self._threads.append(
                threading.Thread(target=self._resync, name=self._title("resync"), daemon=True)
            )

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` on every change from now on; what is cached already comes as added."""
        with self._dispatch:
            for obj in self._cache.each():
                handler.call(Change(None, obj))
            self._handlers.append(handler)

    def start(self) -> None:
        """Start following the server. Once per informer."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """End the watch; wait up to `timeout` seconds for each thread; tell whether all ended."""
        self._stop.set()
        with self._watch_lock:
            if self._watch is not None:
                self._watch.close()
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in started)

    @property
    def synced(self) -> bool:
        """Whether the first list is in the cache and its handlers were called."""
        return self._synced.is_set()

    @property
    def last_error(self) -> ApiError | None:
        """Why the server could not be followed at the last attempt; None when it could."""
        return self._last_error

    @property
    def silent_for(self) -> float:
        """For how many seconds nothing was heard from the server about this resource, though it
        says something at least each time a watch begins or ends."""
        return self._clock.monotonic() - self._heard_at

    @property
    def idle_for(self) -> float:
        """For how many seconds nothing was heard, and no attempt came to an end either: more than
        a few minutes are no fault of the server."""
        return self._clock.monotonic() - max(self._heard_at, self._tried_at)

    def wait_synced(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the first list; tell whether it is there."""
        return self._clock.wait(self._synced, timeout)

    def get(self, namespace: str, name: str) -> T | None:
        """The cached object. The namespace of a cluster-wide one is empty."""
        return self._cache.get((namespace, name))

    def list(self, namespace: str = "") -> Sequence[T]:
        """The cached objects of one namespace, or of all, in order of namespace and name."""
        return self._cache.list(namespace)

    def by_index(self, index: str, value: str) -> Sequence[T]:
        """The cached objects with `value` in `index`, in order of namespace and name.

        Raises `KeyError` for an index that was not declared.
        """
        return self._cache.by_index(index, value)

    def keys_by_index(self, index: str, value: str) -> Sequence[Key]:
        """Namespace and name of those objects: cheaper than the objects.

        Raises `KeyError` for an index that was not declared.
        """
        return self._cache.keys_by_index(index, value)

    def keys(self, namespace: str) -> Sequence[Key]:
        """Namespace and name of the namespace's objects, in no particular order."""
        return self._cache.all_keys(namespace)

    def __contains__(self, key: Key) -> bool:
        return key in self._cache

    def __len__(self) -> int:
        return len(self._cache)

    # The watching thread.

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if not self._version:
                    self._read_list()
                if self._follow() >= WORTHWHILE:
                    continue
            except Gone as error:
                self._version = ""
                self._trouble(error)
            except ApiError as error:
                self._trouble(error)
            except Exception:
                log.exception("%s: following changes failed", self._title("informer"))
            self._tried_at = self._clock.monotonic()
            if not self._stop.is_set():
                self._clock.wait(self._stop, self._backoff.next())

    def _trouble(self, error: ApiError) -> None:
        if not self._stop.is_set():
            self._last_error = error
            log.warning("%s: %s", self._title("informer"), error)

    def _read_list(self) -> None:
        try:
            version, seen = self._read_pages(PAGE_SIZE)
        except _Interrupted:
            # The snapshot behind the token expired while we read it: take everything at once.
            version, seen = self._read_pages(0)
        for key in self._cache.all_keys():
            if key not in seen:
                self._remove(key)
        self._version = version
        self._last_error = None
        self._synced.set()

    def _read_pages(self, limit: int) -> tuple[str, set[Key]]:
        """Put one consistent list into the cache; return its version and what it holds."""
        seen: set[Key] = set()
        page = self._list_page(limit, "")
        while True:
            for obj in page.items:
                seen.add(obj.key)
                self._put(obj)
            if not page.continue_token:
                return page.resource_version, seen
            try:
                page = self._list_page(limit, page.continue_token)
            except Gone as error:
                raise _Interrupted from error

    def _list_page(self, limit: int, token: str) -> Page[T]:
        page = self._door.list(
            self.resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=limit,
            continue_token=token,
        )
        self._hear()
        return page

    def _follow(self) -> float:
        """Watch until the server ends the watch as it was asked to; return after how many seconds.

        Raises the door's errors.
        """
        began = self._clock.monotonic()
        with self._door.watch(
            self.resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=self._version,
            timeout_seconds=self._rng.randint(*WATCH_SECONDS),
        ) as watch:
            with self._watch_lock:
                self._watch = watch
                if self._stop.is_set():
                    return 0.0
            self._last_error = None
            self._hear()
            try:
                for event in watch:
                    self._hear()
                    self._apply(event)
                    self._backoff.reset()
            except Gone:
                # Pauses grow while each new list is followed by this: lists are expensive.
                raise
            except ApiError:
                self._backoff.reset()  # the watch had begun: the server can be reached
                raise
            finally:
                with self._watch_lock:
                    self._watch = None
        self._backoff.reset()
        self._hear()
        return self._clock.monotonic() - began

    def _hear(self) -> None:
        self._heard_at = self._clock.monotonic()

    def _apply(self, event: WatchEvent[T]) -> None:
        if event.object is not None:
            if event.type is EventType.DELETED:
                self._remove(event.object.key, event.object)
            else:
                self._put(event.object)
        self._version = event.resource_version

    def _put(self, obj: T) -> None:
        with self._dispatch:
            old = self._cache.get(obj.key)
            if old is not None and _same(old, obj):
                return
            if old is not None and old.metadata.uid != obj.metadata.uid:
                # Deleted and created again while nobody looked: two objects, not a change of one.
                self._remove(obj.key)
            self._tell(self._cache.put(obj.key, self._slim(obj) if self._slim else obj))

    def _remove(self, key: Key, last: T | None = None) -> None:
        """`last`: the object as it was when it was deleted, when the server told."""
        with self._dispatch:
            change = self._cache.remove(key)
            if change is not None:
                self._tell(Change(last or change.old, None))

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            handler.call(change)

    # The resync thread.

    def _resync(self) -> None:
        while not self._clock.wait(self._stop, self._resync_period):
            with self._dispatch:
                for obj in self._cache.each():
                    self._tell(Change(obj, obj))

    def _title(self, what: str) -> str:
        return f"{what} of {self.resource.name}"


class _Interrupted(Exception):
    """A list's later pages are no longer to be had."""


def _same(old: ApiObject, new: ApiObject) -> bool:
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.resource_version == new.metadata.resource_version
    )

"""The embedded store's operations."""

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.embedded.store import reads, writes
from captfctl.embedded.store.cleanup import DefinitionCleanup
from captfctl.embedded.store.door import EmbeddedDoor, Track
from captfctl.embedded.store.engine import LOG_BYTES, LOG_LIMIT, Engine
from captfctl.embedded.store.expiry import EventExpiry, expires
from captfctl.embedded.store.journal import Journal, NoJournal, SqliteJournal
from captfctl.embedded.store.kinds.namespaces import BOOTSTRAP
from captfctl.embedded.store.registry import Registry, Served
from captfctl.embedded.store.requests import (
    IN_PROCESS,
    Deleted,
    DeleteOptions,
    ListOptions,
    RawPage,
    WatchOptions,
    WriteOptions,
    Written,
)
from captfctl.embedded.store.violations import not_found, not_served
from captfctl.embedded.store.watch import RawWatch
from captfctl.embedded.store.writes import Change
from captfctl.model.resource import Document
from captfctl.model.resources import CRDS, NAMESPACES, PODS

SubresourceHandler = Callable[[str, str, Document], Document]


class EmbeddedStore:
    """Objects with the semantics of kube-apiserver. Every method may be called from any thread.

    Raises the errors of `captfctl.cluster.errors`; a write that raises has not taken place.
    """

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        chance: random.Random | None = None,
        log_limit: int = LOG_LIMIT,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        source = chance or random.SystemRandom()
        self._engine = Engine(journal, clock, source, log_limit, log_bytes)
        self._expiry = EventExpiry(self._engine)
        self._cleanup = DefinitionCleanup(self._engine)
        self._handlers: dict[tuple[str, str], SubresourceHandler] = {}
        self._bootstrap()
        self._cleanup.resume()

    @classmethod
    def in_memory(
        cls,
        clock: Clock,
        *,
        chance: random.Random | None = None,
        log_limit: int = LOG_LIMIT,
        log_bytes: int = LOG_BYTES,
    ) -> "EmbeddedStore":
        """A store that is gone with the process.

        `chance` draws uids and generated names. `log_limit`, `log_bytes`: how many changes of one
        resource, and how many bytes of its objects, are kept for watches and pages; older versions
        are `Gone`.
        """
        return cls(NoJournal(), clock, chance=chance, log_limit=log_limit, log_bytes=log_bytes)

    @classmethod
    def open(
        cls,
        path: Path,
        clock: Clock,
        *,
        chance: random.Random | None = None,
        log_limit: int = LOG_LIMIT,
    ) -> "EmbeddedStore":
        """The store in directory `path`, which is made when absent. One process at a time.

        The versions of an earlier process are `Gone`; what it acknowledged is there. Raises
        `EnvironmentFault` when the directory is in use, read-only, full or damaged.
        """
        journal = SqliteJournal(path)
        try:
            return cls(journal, clock, chance=chance, log_limit=log_limit)
        except BaseException:
            journal.close()
            raise

    def _bootstrap(self) -> None:
        """A cluster is never without these namespaces."""
        served = self.registry.find(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)
        for name in BOOTSTRAP:
            try:
                self.get(served, name)
            except NotFound:
                self.create(served, {"metadata": {"name": name}})

    def close(self) -> None:
        """End all watches and release the directory. Later calls raise `Unavailable`."""
        self._engine.close()

    def door(self, track: Track | None = None, user: Mapping[str, Any] = IN_PROCESS) -> Door:
        """The typed door. `track` keeps note of its writes in `metadata.managedFields`, `user` is
        who makes them, for admission."""
        return EmbeddedDoor(self, track, user)

    @property
    def registry(self) -> Registry:
        """What is served."""
        return self._engine.registry

    @property
    def resource_version(self) -> str:
        """The version of the latest write."""
        return str(self._engine.version)

    def get(self, served: Served, name: str, namespace: str = "") -> bytes:
        """The object as JSON, in `served`'s version."""
        self._expire(served)
        key = f"{namespace}/{name}" if served.resource.namespaced else name
        record = self._engine.collection(served).records.get(key)
        if record is None:
            raise not_found(served.resource.name, name)
        return writes.body_of(served, record)

    def require_version(self, resource_version: str) -> None:
        """Raises `VersionTooLarge` for a version that the store has not reached."""
        reads.reached_version(self._engine, resource_version)

    def list(
        self, served: Served, namespace: str = "", options: ListOptions | None = None
    ) -> RawPage:
        """The objects of one namespace, or of all when it is empty."""
        self._expire(served)
        return reads.list_page(self._engine, served, namespace, options or ListOptions())

    def watch(
        self,
        served: Served,
        namespace: str = "",
        options: WatchOptions | None = None,
        *,
        wake: Callable[[], None] | None = None,
    ) -> RawWatch:
        """Changes after a version. Raises `Gone` for one that is older than the change log."""
        wanted = options or WatchOptions()
        return reads.start_watch(self._engine, served, namespace, wanted, wake)

    def create(
        self,
        served: Served,
        document: Document,
        namespace: str = "",
        options: WriteOptions | None = None,
    ) -> Written:
        """`document` belongs to the store afterwards."""
        written = writes.create(
            self._engine, served, document, namespace, options or WriteOptions()
        )
        self._written(served, written)
        return written

    def modify(
        self,
        served: Served,
        name: str,
        namespace: str,
        change: Change,
        options: WriteOptions | None = None,
        *,
        subresource: str = "",
        create: bool = False,
    ) -> Written:
        """Read, change, write: repeated until no other write came between.

        `change` gets the current object in `served`'s version (its own copy; `None` when it does
        not exist and `create` is set) and returns the wanted one. What it raises passes through.
        A resourceVersion or uid in the result that is not the stored one is a `Conflict`. A result
        without a resourceVersion replaces whatever is there, where the kind allows that (custom
        resources and Leases do not: `Invalid`). `subresource` is empty, `status` or, for
        Namespaces, `finalize`. An unchanged object is not written. PUT and every kind of PATCH
        are this.
        """
        written = writes.modify(
            self._engine,
            served,
            name,
            namespace,
            change,
            options or WriteOptions(),
            subresource=subresource,
            create_absent=create,
        )
        self._written(served, written)
        return written

    def _expire(self, served: Served) -> None:
        if expires(served.storage):
            self._expiry.sweep()

    def _written(self, served: Served, written: Written) -> None:
        if expires(served.storage):
            self._expiry.written(written)
        self._cleanup.after(served)

    def delete(
        self, served: Served, name: str, namespace: str = "", options: DeleteOptions | None = None
    ) -> Deleted:
        """Remove the object, or mark it while something holds it back."""
        deleted = writes.delete(self._engine, served, name, namespace, options or DeleteOptions())
        self._cleanup.after(served)
        return deleted

    def delete_collection(
        self,
        served: Served,
        namespace: str = "",
        selection: ListOptions | None = None,
        options: DeleteOptions | None = None,
    ) -> RawPage:
        """Delete all that `selection` selects, in one transaction; the answer lists them as they
        were. Definitions, each of which takes its objects with it, go one after the other."""
        page = self.list(served, namespace, selection)
        names = [writes.name_of(body) for body in page.items]
        if served.storage != CRDS.name:
            writes.delete_all(self._engine, served, names, options or DeleteOptions())
            self._cleanup.after(served)
            return page
        for space, name in names:
            with contextlib.suppress(NotFound):
                self.delete(served, name, space, options)
        return page

    def serve_subresource(
        self, resource: str, subresource: str, handler: SubresourceHandler
    ) -> None:
        """Let `handler(name, namespace, body)` answer POSTs to a subresource of `pods`, say."""
        self._handlers[resource, subresource] = handler

    def create_subresource(
        self, served: Served, name: str, namespace: str, subresource: str, body: Document
    ) -> Document:
        """POST to a subresource: a pod's `binding`, and what `serve_subresource` has added."""
        self.get(served, name, namespace)
        resource = served.resource.name
        if (resource, subresource) == (PODS.name, "binding"):
            return self._bind(served, name, namespace, body)
        handler = self._handlers.get((resource, subresource))
        if handler is None:
            raise not_served()
        return handler(name, namespace, body)

    def _bind(self, served: Served, name: str, namespace: str, body: Document) -> Document:
        writes.bind(self._engine, served, name, namespace, body)
        return {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }

    def dependents(self, uid: str) -> Sequence[tuple[Served, str, str]]:
        """Every object with an owner reference to `uid`: resource, namespace, name."""
        return reads.dependents(self._engine, uid)

    def compact(self) -> None:
        """Forget the change log: older resourceVersions and continue tokens are `Gone`."""
        self._engine.compact()

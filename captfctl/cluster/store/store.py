"""The embedded store's operations."""

import random
from collections.abc import Callable
from pathlib import Path

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.store.registry import Registry, Served
from captfctl.cluster.store.requests import (
    Deleted,
    DeleteOptions,
    ListOptions,
    RawPage,
    WatchOptions,
    WriteOptions,
    Written,
)
from captfctl.cluster.store.watch import RawWatch
from captfctl.model.resource import Document

Change = Callable[[Document | None], Document]


class EmbeddedStore:
    """Objects with the semantics of kube-apiserver. Every method may be called from any thread.

    Raises the errors of `captfctl.cluster.errors`; a write that raises has not taken place.
    """

    registry: Registry

    @classmethod
    def in_memory(cls, clock: Clock, *, chance: random.Random | None = None) -> "EmbeddedStore":
        """A store that is gone with the process. `chance` draws uids and generated names."""
        raise NotImplementedError

    @classmethod
    def open(
        cls, path: Path, clock: Clock, *, chance: random.Random | None = None
    ) -> "EmbeddedStore":
        """The store in directory `path`, which is made when absent. One process at a time.

        Raises `EnvironmentFault` when the directory is in use, read-only, full or damaged.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End all watches and release the directory. Later calls raise `Unavailable`."""
        raise NotImplementedError

    def door(self, field_owner: str = "captfctl") -> Door:
        """The typed door."""
        raise NotImplementedError

    @property
    def resource_version(self) -> str:
        """The version of the latest write."""
        raise NotImplementedError

    def get(self, served: Served, name: str, namespace: str = "") -> bytes:
        raise NotImplementedError

    def list(
        self, served: Served, namespace: str = "", options: ListOptions | None = None
    ) -> RawPage:
        raise NotImplementedError

    def watch(
        self,
        served: Served,
        namespace: str = "",
        options: WatchOptions | None = None,
        *,
        wake: Callable[[], None] | None = None,
    ) -> RawWatch:
        raise NotImplementedError

    def create(
        self,
        served: Served,
        document: Document,
        namespace: str = "",
        options: WriteOptions | None = None,
    ) -> Written:
        """`document` belongs to the store afterwards. Its `status` is dropped where status is apart."""
        raise NotImplementedError

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
        A resourceVersion or uid in the result that is not the stored one is a `Conflict`; none
        at all means "whatever is there". `subresource` is empty or `status`. An unchanged object
        is not written. PUT and every kind of PATCH are this.
        """
        raise NotImplementedError

    def delete(
        self, served: Served, name: str, namespace: str = "", options: DeleteOptions | None = None
    ) -> Deleted:
        raise NotImplementedError

    def delete_collection(
        self,
        served: Served,
        namespace: str = "",
        selection: ListOptions | None = None,
        options: DeleteOptions | None = None,
    ) -> RawPage:
        """Delete all that `selection` selects; the answer lists them as they were."""
        raise NotImplementedError

    def dependents(self, uid: str) -> list[tuple[Served, str, str]]:
        """Every object with an owner reference to `uid`: resource, namespace, name."""
        raise NotImplementedError

    def compact(self) -> None:
        """Forget the change log: older resourceVersions and continue tokens are `Gone`."""
        raise NotImplementedError

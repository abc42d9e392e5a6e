"""Doors of the command line: to the local control plane, running or not, or to an API server."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.embedded.layout import KUBECONFIG, STORE
from captfctl.errors import EnvironmentFault
from captfctl.model import keys


def running_here(data: Path) -> bool:
    """Whether some process runs the control plane that is kept in `data`."""
    from captfctl.embedded.store.journal import in_use

    return in_use(data / STORE)


@contextmanager
def local_door(data: Path, clock: Clock) -> Iterator[Door]:
    """The local control plane: through its API when it runs, else its store. In the store, too, it
    is its owner who reads and writes.

    Raises `EnvironmentFault` when there is none.
    """
    if running_here(data):
        from captfctl.cluster.live import LiveDoor

        door = LiveDoor.from_kubeconfig(data / KUBECONFIG)
        try:
            yield door
        finally:
            door.close()
        return
    if not _is_there(data / STORE):
        raise EnvironmentFault(
            "there is no local control plane",
            where=str(data),
            do="start one with `captfctl local up` or `captfctl reconcile -f PATH --local`, "
            "or name a cluster's kubeconfig with --kubeconfig",
        )
    from captfctl.embedded.apiserver.apply import noted_door
    from captfctl.embedded.store import LOCAL_ADMIN, EmbeddedStore

    store = EmbeddedStore.open(data / STORE, clock)
    try:
        yield noted_door(store, keys.COMMANDS, clock, LOCAL_ADMIN)
    finally:
        store.close()


@contextmanager
def cluster_door(kubeconfig: Path | None, data: Path, clock: Clock) -> Iterator[Door]:
    """The API server of a kubeconfig; without one the local control plane."""
    if kubeconfig is None:
        with local_door(data, clock) as door:
            yield door
        return
    from captfctl.cluster.live import LiveDoor

    live = LiveDoor.from_kubeconfig(kubeconfig)
    try:
        yield live
    finally:
        live.close()


def exists_here(data: Path) -> bool:
    """Whether a control plane is kept in `data`, running or not."""
    return _is_there(data / STORE)


def _is_there(directory: Path) -> bool:
    """Raises `EnvironmentFault` when that cannot be told."""
    try:
        return stat.S_ISDIR(directory.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise EnvironmentFault(
            "the data directory cannot be used",
            where=str(directory),
            why=problem.strerror or "",
            do="name another one with --data",
        ) from None

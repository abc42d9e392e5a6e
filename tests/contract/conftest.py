"""The doors that the contract is held against, and the places to work in.

Only this file knows which door is which. The tests know a door, a namespace of their own, and
resources of their own kind.
"""

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError, NotFound
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.core import CustomResourceDefinition, Namespace
from captfctl.model.meta import ObjectMeta
from captfctl.model.resource import Document, Resource
from captfctl.model.resources import CRDS, NAMESPACES
from tests.contract import widgets
from tests.controlplane.session import api_server


@dataclass
class Server:
    """A door and, where there is a way, how to make its server forget old versions."""

    door: Door
    compact: Callable[[], None] | None = None


def _in_memory(_: pytest.TempPathFactory) -> Iterator[Server]:
    store = EmbeddedStore.in_memory(SystemClock())
    yield Server(store.door(), store.compact)
    store.close()


def _on_sqlite(folders: pytest.TempPathFactory) -> Iterator[Server]:
    store = EmbeddedStore.open(folders.mktemp("store"), SystemClock())
    yield Server(store.door(), store.compact)
    store.close()


def _over_http(folders: pytest.TempPathFactory) -> Iterator[Server]:
    from captfctl.cluster.live import LiveDoor
    from captfctl.embedded.apiserver import ApiServer

    store = EmbeddedStore.in_memory(SystemClock())
    server = ApiServer(store, data_dir=folders.mktemp("server"), clock=SystemClock())
    server.start()
    door = LiveDoor.from_kubeconfig(server.kubeconfig_path)
    yield Server(door, store.compact)
    door.close()
    server.stop()
    store.close()


def _on_kubernetes(folders: pytest.TempPathFactory) -> Iterator[Server]:
    from captfctl.cluster.live import LiveDoor

    with api_server(folders.mktemp("kubernetes")) as (kubeconfig, forget):
        door = LiveDoor.from_kubeconfig(kubeconfig)
        yield Server(door, forget)
        door.close()


SERVERS = {
    "memory": _in_memory,
    "sqlite": _on_sqlite,
    "http": _over_http,
    "kubernetes": _on_kubernetes,
}


@pytest.fixture(
    scope="session",
    params=[
        "memory",
        "sqlite",
        "http",
        pytest.param("kubernetes", marks=pytest.mark.kubernetes),
    ],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    yield from SERVERS[request.param](tmp_path_factory)


@pytest.fixture(scope="session")
def door(server: Server) -> Door:
    return server.door


@pytest.fixture
def compact(server: Server) -> Callable[[], None]:
    if server.compact is None:  # somebody else's etcd is not compacted for a test
        pytest.skip("the server that was named cannot be made to forget")
    return server.compact


@pytest.fixture
def namespace(door: Door) -> Iterator[str]:
    name = f"contract-{uuid.uuid4().hex[:10]}"
    door.create(NAMESPACES, Namespace(metadata=ObjectMeta(name=name)))
    yield name
    door.delete(NAMESPACES, name)


@dataclass
class Definitions:
    """Installs definitions of their own group each, and removes them at the end."""

    door: Door
    names: list[str]

    def install(
        self,
        schema: Document | None = None,
        *,
        status: bool = True,
        namespaced: bool = True,
        root: Document | None = None,
        **version: object,
    ) -> Resource[Document]:
        """A resource with this schema for `spec` (default: anything goes), ready to be used.

        `root` is the whole schema; further arguments are fields of the definition's version.
        """
        group = f"g{uuid.uuid4().hex[:10]}.contract.test"
        definition = widgets.definition(
            group, schema, status=status, namespaced=namespaced, root=root, **version
        )
        self.door.create(CRDS, definition)
        self.names.append(definition.metadata.name)
        resource = Resource(group, "v1", "Widget", "widgets", namespaced, Document)
        wait_for(lambda: served(self.door, resource))
        return resource

    def remove(self) -> None:
        for name in self.names:
            try:
                self.door.delete(CRDS, name)
            except NotFound:
                continue


def served(door: Door, resource: Resource[Document]) -> bool:
    try:
        crd: CustomResourceDefinition = door.get(CRDS, f"{resource.plural}.{resource.group}")
        door.list(resource)
    except NotFound:
        return False
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in crd.status.get("conditions") or ()
    )


def wait_for(check: Callable[[], bool], seconds: float = 20.0) -> None:
    """Until `check` holds; what the door raises meanwhile counts as no."""
    clock, never = SystemClock(), threading.Event()
    end = clock.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except ApiError:
            pass
        if clock.monotonic() > end:
            raise AssertionError(f"did not come true within {seconds} seconds")
        clock.wait(never, 0.02)


@pytest.fixture(scope="session")
def definitions(door: Door) -> Iterator[Definitions]:
    found = Definitions(door, [])
    yield found
    found.remove()


@pytest.fixture(scope="session")
def widget(definitions: Definitions) -> Resource[Document]:
    """A namespaced kind with a status subresource whose spec may hold anything."""
    return definitions.install()


@pytest.fixture(scope="session")
def plain(definitions: Definitions) -> Resource[Document]:
    """The same without a status subresource."""
    return definitions.install(status=False)


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    return wait_for

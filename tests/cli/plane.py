"""A local control plane that is stopped, for commands that read and write it."""

from pathlib import Path
from typing import Any

from captfctl.clock import SystemClock
from captfctl.cluster.door import Door
from captfctl.embedded.plane import install
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.owner import Owner
from captfctl.model.resources import TERRAFORM_CLUSTERS
from tests.support.states import put_state


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": TERRAFORM_CLUSTERS.api_version,
        "kind": TERRAFORM_CLUSTERS.kind,
        "metadata": {"name": name},
        "spec": {
            "source": {"image": "registry.example.com/a:v1"},
            "identityRef": {"name": "cloud"},
            **spec,
        },
    }


class Plane:
    """A control plane that is stopped, with a TerraformCluster in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with self.door() as door:
            install(door)

    def door(self) -> "Opened":
        return Opened(self.folder / "store")

    def add(self, name: str, *resources: str, **spec: Any) -> None:
        with self.door() as door:
            made = door.create(TERRAFORM_CLUSTERS.untyped(), cluster(name, **spec), "default")
            owner = Owner(TERRAFORM_CLUSTERS.kind, "default", name, made["metadata"]["uid"])
            if resources:
                put_state(door, owner, 1, resources)

    def owner(self, door: Door, name: str) -> Owner:
        uid = door.get(TERRAFORM_CLUSTERS, name, "default").metadata.uid
        return Owner(TERRAFORM_CLUSTERS.kind, "default", name, uid)

    def is_there(self, name: str) -> bool:
        with self.door() as door:
            found = door.list(TERRAFORM_CLUSTERS, "default").items
        return any(one.metadata.name == name and not one.deleting for one in found)


class Opened:
    def __init__(self, store: Path) -> None:
        self._store = EmbeddedStore.open(store, SystemClock())

    def __enter__(self) -> Door:
        return self._store.door()

    def __exit__(self, *_: object) -> None:
        self._store.close()

"""A state that was stored only in part is replaced by the whole one, with a real runtime
(runner.md: A state that could not be stored)."""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.resources import SECRETS
from runner import wire
from tests.runner.harness import wait_until
from tests.runner.test_interrupt_matrix import _can_name_hosts
from tests.support.binaries import NEEDS_TERRAFORM
from tests.support.proxy import FaultProxy
from tests.tools.interrupt_matrix import RESOURCES, Site

pytestmark = [
    pytest.mark.terraform,
    NEEDS_TERRAFORM,
    pytest.mark.skipif(not _can_name_hosts(), reason="needs a host name of its own"),
]


class Torn:
    """A run whose API server goes away when its state is due; its stored state is then torn."""

    def __init__(self, folder: Path, store: EmbeddedStore, server: ApiServer, proxy: FaultProxy):
        self.proxy = proxy
        self.door = store.door()
        self.site = Site(folder, "terraform", store, server, proxy.port)

    def base(self):
        name = next(
            secret.metadata.name
            for secret in self.door.list(SECRETS, "default").items
            if secret.metadata.name.startswith("tfstate-default-")
        )
        return self.door.get(SECRETS, name, "default")

    def tear(self, change: Callable[[bytes], bytes]) -> None:
        secret = self.base()
        state = json.loads(gzip.decompress(secret.data["tfstate"]))
        state["noise"] = random.Random(1).randbytes(2000).hex()
        secret.data["tfstate"] = change(gzip.compress(json.dumps(state).encode()))
        self.door.update(SECRETS, secret)

    def kept(self) -> list[str]:
        names = [secret.metadata.name for secret in self.door.list(SECRETS, "default").items]
        return [name for name in names if name.startswith("captf-unsaved-")]


@pytest.fixture
def torn(tmp_path: Path) -> Iterator[Torn]:
    clock = SystemClock()
    store = EmbeddedStore.in_memory(clock)
    (tmp_path / "api").mkdir()
    (tmp_path / "site").mkdir()
    server = ApiServer(store, data_dir=tmp_path / "api", clock=clock)
    server.start()
    try:
        with FaultProxy("127.0.0.1", int(server.url.rpartition(":")[2])) as proxy:
            yield Torn(tmp_path / "site", store, server, proxy)
    finally:
        server.stop()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "breaks off": lambda data: data[: len(data) // 2],
    "two states": lambda data: data[:700] + data[300:],
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_run_that_tore_its_state_stores_the_whole_one(torn, change):
    process = torn.site.start()
    wait_until(torn.site.at_end.exists, "the last resource")
    torn.proxy.leave()
    left = torn.site.work / wire.ERRORED_STATE
    wait_until(lambda: left.exists() and left.read_text().endswith("}\n"), "the errored state")
    torn.tear(CHANGES[change])
    torn.proxy.heal()
    process.wait(60)
    assert torn.site.made == RESOURCES
    assert torn.site.lock() == ("", "")
    assert torn.kept() == []
    assert wire.decode(torn.site.result.read_text()).unsaved is None


def test_the_next_run_stores_a_kept_state_over_a_torn_one(torn):
    assert torn.site.start().wait(60) == 0
    state = gzip.decompress(torn.base().data["tfstate"])
    chunk = torn.site.place / "config" / wire.UNSAVED_DIRECTORY
    chunk.mkdir()
    (chunk / "0").write_bytes(gzip.compress(state))
    torn.tear(CHANGES["breaks off"])
    again = torn.site.start("--unsaved-chunks=1").wait(60)
    assert again == 0, (torn.site.place / "log").read_text()
    result = wire.decode(torn.site.result.read_text())
    assert result.did_step(wire.STATE_RECOVER)
    assert torn.site.made == RESOURCES == len(torn.site.created)

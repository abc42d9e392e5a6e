"""An embedded store and what its tests put into it."""

from collections.abc import Iterator

import pytest

from captfctl.embedded.store import EmbeddedStore, Served
from captfctl.model.resource import Document
from tests.support.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[EmbeddedStore]:
    found = EmbeddedStore.in_memory(clock)
    yield found
    found.close()


@pytest.fixture
def secrets(store: EmbeddedStore) -> Served:
    return store.registry.find("", "v1", "secrets")


def secret(name: str, text: str = "x", **metadata: object) -> Document:
    return {"metadata": {"name": name, **metadata}, "stringData": {"k": text}}

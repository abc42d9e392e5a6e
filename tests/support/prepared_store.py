"""Stores in memory that know our kinds and Cluster API's from their start.

Creating the definitions costs 100 ms and more in each store; hundreds of tests want them, and only
few test how they are created.
"""

import copy
import random
from collections.abc import Iterator, Sequence
from functools import cache

from captfctl.clock import Clock
from captfctl.embedded.capi import capi_crds
from captfctl.embedded.store import EmbeddedStore
from captfctl.embedded.store.journal import NoJournal, Row, StoredObject
from captfctl.model.crds import crds
from captfctl.model.resource import Document
from captfctl.model.resources import CRDS
from tests.support.clock import FakeClock


@cache
def definitions() -> list[Document]:
    return [*crds(), *capi_crds()]


class _Recorded(NoJournal):
    """Keeps in memory what a store wrote, for other stores to begin with."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], StoredObject] = {}

    def write(self, storage: str, rows: Sequence[Row]) -> None:
        for row in rows:
            assert row.body is not None, "nothing is deleted here"
            self.kept[storage, row.key] = StoredObject(storage, row.key, row.version, row.body)


class _Prepared(NoJournal):
    """Begins with what was recorded, and keeps nothing."""

    def __init__(self, recorded: _Recorded) -> None:
        self._kept = list(recorded.kept.values())

    def version(self) -> int:
        return max(stored.version for stored in self._kept)

    def objects(self) -> Iterator[StoredObject]:
        return iter(self._kept)


@cache
def _recorded() -> _Recorded:
    journal = _Recorded()
    door = EmbeddedStore(journal, FakeClock()).door()
    for document in definitions():
        door.create(CRDS.untyped(), copy.deepcopy(document))
    return journal


def prepared_store(clock: Clock, chance: random.Random | None = None) -> EmbeddedStore:
    """A store in memory in which the definitions stand."""
    return EmbeddedStore(_Prepared(_recorded()), clock, chance=chance)

"""Reading the objects that `-f` names, with everything that a cluster would refuse about them."""

import sys

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.embedded.capi import capi_crds, capi_policies
from captfctl.embedded.described import DescribedSet, load, scratch_store
from captfctl.embedded.store import EmbeddedStore
from captfctl.install.policies import policies_for_files
from captfctl.model.crds import crds


def known_kinds(clock: Clock) -> EmbeddedStore:
    """An empty store in memory that serves our kinds and those of Cluster API, with the rules of
    admission."""
    rules = (*policies_for_files(), *capi_policies())
    return scratch_store(clock, (*crds(), *capi_crds(), *rules))


def read_objects(files: list[str], store: EmbeddedStore) -> DescribedSet:
    """The objects, also put into the store. What may not be what was meant is told.

    Raises `BadInput` with everything that is wrong.
    """
    described = load(files, store, stdin=sys.stdin.buffer)
    for warning in described.warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    return described


def door_of_files(files: list[str], clock: Clock) -> Door:
    """The objects in the files, as those of a cluster. Raises `BadInput`."""
    store = known_kinds(clock)
    read_objects(files, store)
    return store.door()

"""Reading the objects that `-f` names, with everything that a cluster would refuse about them."""

import sys

from captfctl.clock import Clock
from captfctl.embedded.capi_crds import capi_crds
from captfctl.embedded.described import BadInput, DescribedSet, Violation, load, scratch_store
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.crds import crds


def known_kinds(clock: Clock) -> EmbeddedStore:
    """An empty store in memory that serves our kinds and those of Cluster API."""
    return scratch_store(clock, (*crds(), *capi_crds()))


def read_objects(files: list[str], store: EmbeddedStore) -> DescribedSet:
    """The objects, also put into the store. Raises `BadInput` with everything that is wrong."""
    from captfctl.terraform.contract.admission import check_described

    described = load(files, store, stdin=sys.stdin.buffer)
    violations = [
        Violation(item.place(cause.field), cause.message, cause.field)
        for item in described
        for cause in check_described(item.resource, item.document)
    ]
    if violations:
        raise BadInput(violations)
    return described

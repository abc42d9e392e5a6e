"""The embedded store: Kubernetes' object semantics in one process, in memory or on SQLite.

`EmbeddedStore.door()` is the typed door of `captfctl.cluster.door`. The methods that work on raw
JSON, with the options of Kubernetes' requests, are for the API server over it.
"""

from captfctl.embedded.store.admission import DeniedByPolicy
from captfctl.embedded.store.merge import merge_patch
from captfctl.embedded.store.registry import PrinterColumn, Registry, Served
from captfctl.embedded.store.requests import (
    IN_PROCESS,
    LOCAL_ADMIN,
    MANAGER,
    Deleted,
    DeleteOptions,
    FieldValidation,
    ListOptions,
    Manage,
    RawEvent,
    RawPage,
    WatchOptions,
    WriteOptions,
    Written,
)
from captfctl.embedded.store.store import EmbeddedStore
from captfctl.embedded.store.watch import RawWatch

__all__ = [
    "IN_PROCESS",
    "LOCAL_ADMIN",
    "MANAGER",
    "DeleteOptions",
    "Deleted",
    "DeniedByPolicy",
    "EmbeddedStore",
    "FieldValidation",
    "ListOptions",
    "Manage",
    "PrinterColumn",
    "RawEvent",
    "RawPage",
    "RawWatch",
    "Registry",
    "Served",
    "WatchOptions",
    "WriteOptions",
    "Written",
    "merge_patch",
]

"""Reading a state from the Secrets that Terraform's backend wrote (40 §4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from captfctl.cluster.door import Door
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner

CHUNKS_MAX = 32
DECOMPRESSED_MAX = 16 * 1024 * 1024


class StateProblem(StrEnum):
    NO_STATE = "NoState"
    CORRUPT = "Corrupt"
    UNSUPPORTED_VERSION = "UnsupportedVersion"
    ENCRYPTED = "Encrypted"
    INCONSISTENT = "Inconsistent"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is no state to work with. `message` never holds anything of the state itself."""

    problem: StateProblem
    message: str


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """An output of the state; `value` and `type` are its JSON, numbers as written.

    The value may be sensitive: it belongs in no log, status, event or error.
    """

    value: msgspec.Raw = msgspec.Raw(b"null")
    type: msgspec.Raw = msgspec.Raw(b"null")
    sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state that was read. `bytes` is the compressed size of all chunks.

    `chunks` is the metadata of its Secrets in chunk order: the first is the base.
    `resources` counts managed resource blocks, whatever their number of instances.
    """

    serial: int
    lineage: str
    terraform_version: str
    outputs: Mapping[str, Output]
    resources: int
    inputs_hash: str
    chunks: tuple[ObjectMeta, ...]
    bytes: int


def read_state(door: Door, owner: Owner) -> State | Unreadable:
    """Read the object's state, live. Errors of the door are raised: they are no verdict."""
    raise NotImplementedError

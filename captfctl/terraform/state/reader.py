"""Reading a state from the Secrets that Terraform's backend wrote (state.md: Reading a state)."""

import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import msgspec

from captfctl.cluster.door import Door
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.meta import ObjectMeta
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from runner import wire

DECOMPRESSED_MAX = 16 * 1024 * 1024
LARGE = DECOMPRESSED_MAX * 8 // 10
"""From here on a person is told that the state will be too large."""
STATE_VERSION = 4
_GZIP = 31  # zlib's window bits for one gzip member with header and checksum
_PART = re.compile(r"[1-9][0-9]{0,8}")


class StateProblem(StrEnum):
    """Why a state cannot be read."""

    NO_STATE = "NoState"
    CORRUPT = "Corrupt"
    UNSUPPORTED_VERSION = "UnsupportedVersion"
    ENCRYPTED = "Encrypted"
    INCONSISTENT = "Inconsistent"
    TOO_LARGE = "TooLarge"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is no state to work with. `message` never holds anything of the state itself.

    `inputs_hash` is recorded on a state that is too large to be read and works otherwise.
    """

    problem: StateProblem
    message: str
    inputs_hash: str = ""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """An output of the state; `value` and `type` are its JSON text, numbers as written.

    The value may be sensitive: it belongs in no log, status, event or error, and is not shown.
    """

    value: msgspec.Raw = msgspec.Raw(b"null")
    type: msgspec.Raw = msgspec.Raw(b"null")
    sensitive: bool | None = None

    def __repr__(self) -> str:
        return f"Output({len(bytes(self.value))} bytes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state that was read. `bytes` is the compressed size of all chunks, `unpacked` the other.

    `chunks` is the metadata of its Secrets in chunk order: the first is the base. `resources`
    counts managed resource blocks, whatever their number of instances. `digest` is of the
    compressed content.
    """

    serial: int
    lineage: str
    terraform_version: str
    outputs: Mapping[str, Output] = field(repr=False)
    resources: int
    inputs_hash: str
    chunks: tuple[ObjectMeta, ...] = field(repr=False)
    bytes: int
    unpacked: int = 0
    digest: str = ""

    @property
    def large(self) -> bool:
        """Whether it will soon be too large to be read."""
        return self.unpacked >= LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a state file says of itself. `text` is the whole of it, values of resources included: it
    belongs nowhere else."""

    serial: int
    lineage: str
    terraform_version: str
    outputs: Mapping[str, Output] = field(repr=False)
    resources: int
    text: bytes = field(repr=False)


class _Resource(msgspec.Struct):
    mode: str | None = None


class _Document(msgspec.Struct):
    """The fields of a state file that are looked at. Resource attributes never are."""

    version: int | None = None
    serial: int | None = None
    lineage: str | None = None
    terraform_version: str | None = None
    outputs: dict[str, Output] | None = None
    resources: list[_Resource] | None = None
    encryption_version: msgspec.Raw = msgspec.Raw(b"null")  # in a union it would accept null only


_DECODER = msgspec.json.Decoder(_Document)


class _BadStateError(Exception):
    def __init__(self, problem: StateProblem, message: str) -> None:
        super().__init__(message)
        self.unreadable = Unreadable(problem, message)


def state_selector(owner: Owner) -> str:
    """What the backend selects an object's state by, apart from the object's own labels."""
    return (
        f"{keys.TFSTATE}=true,{keys.TFSTATE_SUFFIX}={owner.suffix},{keys.TFSTATE_WORKSPACE}=default"
    )


def read_state(door: Door, owner: Owner) -> State | Unreadable:
    """Read the object's state, live. Errors of the door are raised: they are no verdict."""
    secrets = door.list(SECRETS, owner.namespace, labels=state_selector(owner)).items
    return state_of(secrets, owner)


def state_of(secrets: Sequence[Secret], owner: Owner) -> State | Unreadable:
    """The state in these Secrets, which are all that `state_selector` selects."""
    found = state_and_content(secrets, owner)
    return found if isinstance(found, Unreadable) else found[0]


def state_and_content(
    secrets: Sequence[Secret], owner: Owner
) -> tuple[State, Content] | Unreadable:
    """The same, with the text of the state."""
    if not secrets:
        return Unreadable(StateProblem.NO_STATE, "the object has no state Secret")
    try:
        chunks = _in_order(secrets, owner.suffix)
    except _BadStateError as error:
        return error.unreadable
    return state_in(chunks)


def state_in(chunks: Sequence[Secret]) -> tuple[State, Content] | Unreadable:
    """The state in these Secrets, whatever they are called: its chunks in their order."""
    try:
        payload = _payload(chunks)
    except _BadStateError as error:
        return error.unreadable
    content = content_of(payload)
    inputs_hash = chunks[0].metadata.annotations.get(keys.INPUTS_HASH, "")
    if isinstance(content, Unreadable):
        return replace(content, inputs_hash=inputs_hash)
    state = State(
        serial=content.serial,
        lineage=content.lineage,
        terraform_version=content.terraform_version,
        outputs=content.outputs,
        resources=content.resources,
        inputs_hash=inputs_hash,
        chunks=tuple(chunk.metadata for chunk in chunks),
        bytes=len(payload),
        unpacked=len(content.text),
        digest=digest_of(payload),
    )
    return state, content


def digest_of(payload: bytes) -> str:
    """The digest of a compressed state, as it is recorded on its backups."""
    return hashlib.sha256(payload).hexdigest()


def content_of(payload: bytes) -> Content | Unreadable:
    """What a compressed state holds, read within the limits."""
    try:
        text = _decompress(payload)
        document = _parse(text)
    except _BadStateError as error:
        return error.unreadable
    return Content(
        serial=document.serial or 0,
        lineage=document.lineage or "",
        terraform_version=document.terraform_version or "",
        outputs=document.outputs or {},
        resources=sum(resource.mode == "managed" for resource in document.resources or ()),
        text=text,
    )


def in_mib(size: int) -> str:
    """A size for people, rounded down."""
    return f"{size * 10 // 2**20 / 10:g} MiB"


def _in_order(secrets: Sequence[Secret], suffix: str) -> list[Secret]:
    if len(secrets) > wire.MOST_CHUNKS:
        raise _BadStateError(
            StateProblem.CORRUPT,
            f"the state is spread over {len(secrets)} Secrets; at most {wire.MOST_CHUNKS} are read",
        )
    indexed = [(_index(secret.metadata.name, suffix), secret) for secret in secrets]
    indexed.sort(key=lambda pair: pair[0])
    for expected, (index, _) in enumerate(indexed):
        if index != expected:
            raise _BadStateError(
                StateProblem.INCONSISTENT,
                f"chunk {expected} of the state is missing: "
                f"{len(secrets)} Secrets, the last is chunk {indexed[-1][0]}",
            )
    return [secret for _, secret in indexed]


def _index(name: str, suffix: str) -> int:
    index = chunk_index(name, suffix)
    if index is None:
        raise _BadStateError(
            StateProblem.INCONSISTENT, f"Secret {name} has the labels of the state but not its name"
        )
    return index


def chunk_index(name: str, suffix: str) -> int | None:
    """Which chunk of the state a Secret of this name is; None: no chunk is called so."""
    base = names.state_secret(suffix)
    if name == base:
        return 0
    part = name.removeprefix(f"{base}-part-")
    return int(part) if part != name and _PART.fullmatch(part) else None


def _payload(chunks: Sequence[Secret]) -> bytes:
    for secret in chunks:
        if keys.TFSTATE not in secret.data:
            raise _BadStateError(
                StateProblem.INCONSISTENT,
                f"Secret {secret.metadata.name} has no key {keys.TFSTATE}",
            )
    return b"".join(secret.data[keys.TFSTATE] for secret in chunks)


def _decompress(payload: bytes) -> bytes:
    """The first gzip member; what follows is a stale tail of an earlier, longer state.

    Bounded: a module could write a gzip bomb into its own state.
    """
    stream = zlib.decompressobj(_GZIP)
    try:
        text = stream.decompress(payload, DECOMPRESSED_MAX + 1)
    except zlib.error as error:
        raise _BadStateError(StateProblem.CORRUPT, "the state is not valid gzip") from error
    if len(text) > DECOMPRESSED_MAX:
        raise _BadStateError(
            StateProblem.TOO_LARGE,
            f"the state is larger than {in_mib(DECOMPRESSED_MAX)} when decompressed",
        )
    if not stream.eof:
        raise _BadStateError(StateProblem.CORRUPT, "the state's gzip stream ends too early")
    return text


def _parse(text: bytes) -> _Document:
    try:
        document = _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        # The cause is left out: it could quote the state.
        raise _BadStateError(
            StateProblem.CORRUPT, "the state is not a state file's JSON"
        ) from error
    if bytes(document.encryption_version) != b"null":
        raise _BadStateError(StateProblem.ENCRYPTED, "the state is encrypted by its runtime")
    if document.version != STATE_VERSION:
        found = "none" if document.version is None else document.version
        raise _BadStateError(
            StateProblem.UNSUPPORTED_VERSION,
            f"the state file's version is {found}; only {STATE_VERSION} is read",
        )
    return document

"""Assembling a state from its chunks and checking what was restored (runner.md: Restore)."""

import zlib
from collections.abc import Iterator

from runner import jsontext, wire
from runner.workdir import PrepareError

LARGEST_STATE = 64 << 20
_GZIP = 31  # window bits: a gzip header, the largest window
_PIECE = 1 << 16


def assemble(config: str, chunks: int, directory: str = wire.RESTORE_DIRECTORY) -> bytes:
    """The state in `<config>/<directory>/0 …`. Raises PrepareError.

    Only the first gzip member is read; what follows it is ignored.
    """
    if not 1 <= chunks <= wire.MOST_CHUNKS:
        flag = f"--{directory}-chunks"
        raise PrepareError(f"{flag} is {chunks}, must be 1 to {wire.MOST_CHUNKS}")
    state = _decompress(_chunks(f"{config}/{directory}", chunks))
    try:
        jsontext.check(jsontext.as_ascii([state]))
    except jsontext.JsonError as error:
        raise PrepareError(f"the backup is not valid JSON: {error}") from None
    return state


def _chunks(directory: str, count: int) -> Iterator[bytes]:
    for index in range(count):
        path = f"{directory}/{index}"
        try:
            with open(path, "rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
        except OSError as error:
            raise PrepareError(f"cannot read backup chunk {path}: {error.strerror}") from None


def _decompress(chunks: Iterator[bytes]) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    state = bytearray()
    try:
        for chunk in chunks:
            # Once the member has ended, the rest is read only to notice missing chunks.
            if not unpacker.eof:
                state += unpacker.decompress(chunk, LARGEST_STATE + 1 - len(state))
            if len(state) > LARGEST_STATE:
                raise PrepareError(f"the backup holds more than {LARGEST_STATE} bytes")
    except zlib.error as error:
        raise PrepareError(f"the backup is not intact gzip data: {error}") from None
    if not unpacker.eof:
        raise PrepareError("the backup's gzip data breaks off")
    return bytes(state)


def managed_instances(listing: bytes) -> int:
    """How many managed resource instances `state list` printed."""
    lines = (line.strip() for line in listing.split(b"\n"))
    return sum(1 for line in lines if line and not _resource(line).startswith(b"data."))


def _resource(address: bytes) -> bytes:
    """An address without its modules; one that is malformed is taken whole."""
    rest = address
    while rest.startswith(b"module."):
        position = len(b"module.")
        while position < len(rest) and rest[position : position + 1] not in (b".", b"["):
            position += 1
        if rest[position : position + 1] == b"[":
            position = _after_bracket(rest, position + 1)
        if rest[position : position + 1] != b".":
            return address
        rest = rest[position + 1 :]
    return rest


def _after_bracket(text: bytes, position: int) -> int:
    """Where the text behind the closing bracket begins; the end when there is none."""
    quoted = False
    while position < len(text):
        character = text[position : position + 1]
        if quoted and character == b"\\":
            position += 1
        elif character == b'"':
            quoted = not quoted
        elif character == b"]" and not quoted:
            return position + 1
        position += 1
    return position

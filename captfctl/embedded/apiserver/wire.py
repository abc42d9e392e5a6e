"""Fields of protobuf messages, written."""

_ALL_BITS = (1 << 64) - 1
_VARINT, _BYTES = 0, 2


def varint(value: int) -> bytes:
    """A number of any size up to 64 bits; a negative one in two's complement."""
    value &= _ALL_BITS
    pieces = bytearray()
    while value > 0x7F:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)


def number(place: int, value: int) -> bytes:
    """A field that is a number or a truth value."""
    return varint(place << 3 | _VARINT) + varint(value)


def block(place: int, content: bytes | str) -> bytes:
    """A field that is text, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return varint(place << 3 | _BYTES) + varint(len(content)) + content

"""Stands in for `encodings.idna` in the executable: host names in ASCII only.

The real codec needs a megabyte of Unicode tables. The API server's name, the only one the runner
looks up, is an address or a plain name; any other makes progress events fail, which is allowed.
"""

import codecs


def _encode(text, _errors="strict"):
    return text.encode("ascii"), len(text)


def _decode(data, _errors="strict"):
    return bytes(data).decode("ascii"), len(data)


def getregentry():
    """What the codec machinery asks for."""
    return codecs.CodecInfo(name="idna", encode=_encode, decode=_decode)

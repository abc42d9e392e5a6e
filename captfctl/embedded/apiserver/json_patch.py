"""JSON patch (RFC 6902)."""

import copy
from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from captfctl.cluster.errors import BadRequest, TooLarge
from captfctl.embedded.apiserver.bodies import require_depth
from captfctl.embedded.apiserver.refusals import UnfitPatch
from captfctl.model.resource import Document

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024
"""Bytes: copies of copies would soon fill the memory."""


def json_patch(target: Document, operations: Any) -> Document:
    """The target after the operations, in order; the target itself is left alone.

    Raises `BadRequest` for what is no list of operations, `UnfitPatch` for an operation that does
    not fit the object (a path that is not there, a `test` that fails), and `TooLarge` for a patch
    that copies too much.
    """
    if isinstance(operations, list) and len(operations) > MAX_OPERATIONS:
        raise TooLarge(
            f"a JSON patch has at most {MAX_OPERATIONS} operations, this one {len(operations)}"
        )
    if not isinstance(operations, list) or not all(isinstance(op, dict) for op in operations):
        raise BadRequest("a JSON patch is a list of operations")
    result: Any = copy.deepcopy(target)
    copied = 0
    for number, operation in enumerate(operations, start=1):
        result = _step(result, operation, number)
        if operation["op"] == "copy":
            copied += _weight(result, operation["path"])
            if copied > MAX_COPIED:
                raise TooLarge(f"the JSON patch copies more than {MAX_COPIED} bytes")
        if operation["op"] in ("copy", "move"):
            require_depth(result)
    if not isinstance(result, dict):
        raise BadRequest("the JSON patch leaves something that is not an object")
    return result


def _weight(document: Any, path: str) -> int:
    """How many bytes of JSON a place holds that was just written to."""
    place = jsonpointer.JsonPointer(path)
    holder, last = place.to_last(document)
    if isinstance(holder, list) and last == "-":
        last = -1
    return len(msgspec.json.encode(document if last is None else holder[last]))


def _step(target: Any, operation: Document, number: int) -> Any:
    """One operation. The library's messages quote the object, which may be a Secret: not used."""
    what = f"operation {number} ({operation.get('op')} {operation.get('path')})"
    try:
        return jsonpatch.JsonPatch([operation]).apply(target, in_place=True)
    except (jsonpatch.InvalidJsonPatch, TypeError):
        raise BadRequest(f"{what} is not a JSON patch operation") from None
    except jsonpatch.JsonPatchTestFailed:
        raise UnfitPatch(f"{what}: the value is another one") from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, IndexError):
        raise UnfitPatch(f"{what}: there is no such place in the object") from None

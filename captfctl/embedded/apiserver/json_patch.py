"""JSON patch (RFC 6902)."""

import copy
from typing import Any

import jsonpatch
import jsonpointer

from captfctl.cluster.errors import BadRequest
from captfctl.embedded.apiserver.refusals import UnfitPatch
from captfctl.model.resource import Document


def json_patch(target: Document, operations: Any) -> Document:
    """The target after the operations, in order; the target itself is left alone.

    Raises `BadRequest` for what is no list of operations, `UnfitPatch` for an operation that does
    not fit the object: a path that is not there, a `test` that fails.
    """
    if not isinstance(operations, list) or not all(isinstance(op, dict) for op in operations):
        raise BadRequest("a JSON patch is a list of operations")
    result: Any = copy.deepcopy(target)
    for number, operation in enumerate(operations, start=1):
        result = _step(result, operation, number)
    if not isinstance(result, dict):
        raise BadRequest("the JSON patch leaves something that is not an object")
    return result


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

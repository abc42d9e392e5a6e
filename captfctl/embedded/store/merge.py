"""JSON merge patch (RFC 7386)."""

from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch laid over it: null removes a key, a list replaces the list.

    The target is left alone; what the patch does not touch is shared with it.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged

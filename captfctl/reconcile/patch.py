"""The smallest merge patch between two versions of an object (reconcile.md: Writes of a pass)."""

from typing import Any

import msgspec

Document = dict[str, Any]


def document(obj: msgspec.Struct) -> Document:
    """`obj` as it stands on the wire."""
    result: Document = msgspec.json.decode(msgspec.json.encode(obj))
    return result


def merge_patch(before: Document, after: Document) -> Document:
    """What turns `before` into `after`; empty when they are equal. Lists are replaced whole."""
    patch: Document = {key: None for key in before if key not in after}
    for key, new in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = merge_patch(old, new)
            if inner:
                patch[key] = inner
        elif key not in before or old != new:
            patch[key] = new
    return patch

"""Violations in the words in which a Kubernetes API server puts them."""

from captfctl.cluster.errors import Cause


def required(field: str, detail: str) -> Cause:
    """A field that must be set is not."""
    return Cause(field, f"Required value: {detail}", "FieldValueRequired")


def forbidden(field: str, detail: str) -> Cause:
    """A field may not be set, or not to this value."""
    return Cause(field, f"Forbidden: {detail}", "FieldValueForbidden")


def invalid(field: str, detail: str) -> Cause:
    """`detail` may quote a value only where that cannot be a secret."""
    return Cause(field, f"Invalid value: {detail}")


def too_many(field: str, found: int, limit: int) -> Cause:
    """A list or map has more items than it may have."""
    return Cause(field, f"Too many: {found}: must have at most {limit} items", "FieldValueTooMany")

"""Custom resources: read, filled in and checked by the schema of their definition."""

from datetime import datetime

from captfctl.cluster.errors import Cause
from captfctl.embedded.schemas import Node
from captfctl.embedded.store.pruning import apply_defaults, prune
from captfctl.embedded.store.rules import check_rules
from captfctl.embedded.store.strategy import Strategy
from captfctl.embedded.store.validation import ABSENT, validate
from captfctl.model.resource import Document

_BLOCKING = frozenset(
    f"FieldValue{what}"
    for what in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
"""Violations that the rules in CEL could not be checked with."""
UNCHECKED = Cause(
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)

_TYPE_AND_METADATA = ("apiVersion", "kind", "metadata")


class CustomStrategy(Strategy):
    """One version of a custom resource."""

    has_generation = True
    unconditional_update = False

    def __init__(self, node: Node, has_status: bool) -> None:
        self.node = node
        self.has_status = has_status

    def read(self, document: Document, unknown: list[str]) -> Document:
        prune(self.node, document, "", unknown, keep=_TYPE_AND_METADATA)
        apply_defaults(self.node, document)
        return document

    def prepare_create(self, document: Document, now: datetime) -> None:
        super().prepare_create(document, now)
        if self.has_status:
            # A default may have put the status back that was just taken away.
            apply_defaults(self.node, document)

    def with_status(self, document: Document, old: Document) -> Document:
        result = super().with_status(document, old)
        result["metadata"] = dict(old["metadata"])
        if "managedFields" in document["metadata"]:
            result["metadata"]["managedFields"] = document["metadata"]["managedFields"]
        return result

    def changed(self, document: Document, old: Document) -> bool:
        return self._counted(document) != self._counted(old)

    def _counted(self, document: Document) -> Document:
        ignored = ("metadata", "status") if self.has_status else ("metadata",)
        return {key: value for key, value in document.items() if key not in ignored}

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        causes: list[Cause] = []
        before = ABSENT if old is None else old
        validate(self.node, document, "", causes, before)
        if not any(cause.reason in _BLOCKING for cause in causes):
            check_rules(self.node, document, "", causes, before)
        elif self.node.has_rules:
            causes.append(UNCHECKED)
        return causes

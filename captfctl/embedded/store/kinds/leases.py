"""Leases."""

from captfctl.cluster.errors import Cause
from captfctl.embedded.store.strategy import Typed
from captfctl.embedded.store.violations import invalid
from captfctl.model.resource import Document


class LeaseStrategy(Typed):
    """Leases."""

    unconditional_update = False

    def check(self, document: Document, old: Document | None, subresource: str) -> list[Cause]:
        spec = document.get("spec", {})
        causes = []
        if spec.get("leaseDurationSeconds", 1) <= 0:
            value = spec["leaseDurationSeconds"]
            causes.append(invalid("spec.leaseDurationSeconds", value, "must be greater than 0"))
        if spec.get("leaseTransitions", 0) < 0:
            value = spec["leaseTransitions"]
            causes.append(
                invalid("spec.leaseTransitions", value, "must be greater than or equal to 0")
            )
        return causes

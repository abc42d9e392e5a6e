"""The six operations (runs.md: Operations)."""

from enum import StrEnum


class Op(StrEnum):
    """What a run does."""

    APPLY = "apply"
    PLAN = "plan"
    DESTROY = "destroy"
    REFRESH = "refresh"
    DRIFT = "drift"
    RESTORE = "restore"

    @property
    def mutating(self) -> bool:
        """Takes part in the cluster operation gate."""
        return self in (Op.APPLY, Op.DESTROY, Op.RESTORE)

    @property
    def background(self) -> bool:
        """Held back first when Job slots run short."""
        return self in (Op.REFRESH, Op.DRIFT)


MUTATING = frozenset(op.value for op in Op if op.mutating)
"""Their names, as labels of Jobs have them."""

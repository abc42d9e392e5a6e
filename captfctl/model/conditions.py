"""The conditions of one object while a pass works on it, and the summary of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from captfctl.model.condition_types import (
    FALSE,
    NEGATIVE,
    TRUE,
    UNKNOWN,
    ConditionValue,
    Type,
)
from captfctl.model.meta import Condition, whole_seconds
from captfctl.model.reasons import Ready, Reason, reason_named

__all__ = [
    "AFTER_PROVISIONED",
    "BEFORE_PROVISIONED",
    "FALSE",
    "MESSAGE_MAX",
    "NEGATIVE",
    "TRUE",
    "UNKNOWN",
    "ConditionValue",
    "Conditions",
    "Type",
    "cut",
    "find",
]

MESSAGE_MAX = 32_768

BEFORE_PROVISIONED = (
    Type.DEPENDENCIES_READY,
    Type.IDENTITY_ALLOWED,
    Type.CREDENTIALS_MIRRORED,
    Type.RUNNER_RBAC_READY,
    Type.APPLY_JOB_SUCCEEDED,
    Type.STATE_READABLE,
    Type.OUTPUTS_VALID,
    Type.INFRASTRUCTURE_HEALTHY,
    Type.DELETING,
)
AFTER_PROVISIONED = (Type.INFRASTRUCTURE_HEALTHY, Type.DELETING)


def cut(text: str, limit: int) -> str:
    """`text` within `limit` bytes of UTF-8, cut on a character boundary."""
    raw = text.encode()
    return text if len(raw) <= limit else raw[:limit].decode(errors="ignore")


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of that type; None when there is none."""
    return next((c for c in conditions if c.type == kind), None)


_ORDER: dict[str, int] = {kind.value: index for index, kind in enumerate(Type)}


def _place(condition: Condition) -> tuple[int, str]:
    return _ORDER.get(condition.type, len(_ORDER)), condition.type


class Conditions:
    """The conditions of one object while a pass works on it.

    Setting one keeps its transition time unless the status differs from the one that the object
    came with: a status that a later step sets back has not changed.
    """

    def __init__(self, existing: Sequence[Condition], now: datetime, generation: int) -> None:
        self._found = {c.type: c for c in existing}
        self._by_type = dict(self._found)
        self._now = whole_seconds(now)
        self._generation = generation

    def __getitem__(self, kind: Type) -> Condition | None:
        return self._by_type.get(kind)

    def set_reason(self, reason: Reason, message: str = "") -> Condition:
        """Set the one condition that can have this reason."""
        (kind,) = reason.types
        return self.set(kind, reason.status, reason, message)

    def set(self, kind: Type, status: str, reason: str, message: str = "") -> Condition:
        """Set the condition. An empty message becomes the reason, where that says something."""
        old = self._found.get(kind)
        since = self._now if old is None or old.status != status else old.last_transition_time
        row = reason_named(kind, reason)
        if not message and not (row is not None and row.silent):
            message = reason
        new = Condition(
            type=kind,
            status=status,
            reason=reason,
            message=cut(message, MESSAGE_MAX),
            last_transition_time=since,
            observed_generation=self._generation,
        )
        self._by_type[kind] = new
        return new

    def set_default(self, reason: Reason) -> None:
        """Set the one condition that can have this reason, unless the object has it already."""
        (kind,) = reason.types
        if kind not in self._by_type:
            self.set_reason(reason)

    def move_generation(self, generation: int) -> None:
        """What was said about the object's generation holds for this one, too."""
        for kind, condition in self._by_type.items():
            if condition.observed_generation == self._generation:
                moved = msgspec.structs.replace(condition, observed_generation=generation)
                self._by_type[kind] = moved
        self._generation = generation

    def remove(self, kind: Type) -> None:
        """Take the condition off the object."""
        self._by_type.pop(kind, None)

    def list(self) -> list[Condition]:
        """In a fixed order: ours as declared, then any other by name."""
        return sorted(self._by_type.values(), key=_place)

    def summarize_ready(self, provisioned: bool, *, with_apply: bool = False) -> None:
        """Set `Ready` from the others. `with_apply`: what is provisioned is not ready either while
        a change of it fails or is blocked; one that waits changes nothing."""
        false, unknown = [], []
        apply = self._by_type.get(Type.APPLY_JOB_SUCCEEDED)
        if provisioned and with_apply and apply is not None and apply.status == FALSE:
            false.append(f"* {apply.type}: {apply.message or apply.reason}")
        for kind in AFTER_PROVISIONED if provisioned else BEFORE_PROVISIONED:
            found = self._by_type.get(kind)
            bad = TRUE if kind in NEGATIVE else FALSE
            if found is None:
                if kind is not Type.DELETING:
                    unknown.append(f"* {kind}: not known yet")
            elif found.status == bad:
                false.append(f"* {kind}: {found.message or found.reason}")
            elif found.status == UNKNOWN:
                unknown.append(f"* {kind}: {found.message or found.reason}")
        if false:
            self.set_reason(Ready.NOT_READY, "\n".join(false + unknown))
        elif unknown:
            self.set_reason(Ready.READY_UNKNOWN, "\n".join(unknown))
        else:
            self.set_reason(Ready.READY)

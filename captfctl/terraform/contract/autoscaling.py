"""The autoscaler's limits of a pool, as annotations of its MachinePool give them
(module-contract.md: Autoscaling)."""

import re
from collections.abc import Mapping

from captfctl.model import keys
from captfctl.model.conditions import ConditionValue
from captfctl.model.reasons import AutoscalingActive
from captfctl.terraform.contract.values import Autoscaling

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX = 2**31 - 1


def autoscaling_of(annotations: Mapping[str, str]) -> tuple[Autoscaling, ConditionValue]:
    """The limits, and `AutoscalingActive`. Limits that cannot be used count as none."""
    texts = {key: annotations.get(key) for key in (keys.AUTOSCALER_MIN, keys.AUTOSCALER_MAX)}
    missing = [key for key, text in texts.items() if text is None]
    if len(missing) == len(texts):
        return Autoscaling(), AutoscalingActive.AUTOSCALING_DISABLED.says()
    if missing:
        return _invalid(f"annotation {missing[0]} is missing")
    for key, text in texts.items():
        if _number(text or "") is None:
            return _invalid(f"annotation {key} is {text!r}, not an integer from 0 to {_MAX}")
    low, high = (_number(text or "") or 0 for text in texts.values())
    if low > high:
        return _invalid(f"the minimum {low} is more than the maximum {high}")
    limits = Autoscaling(enabled=True, min=low, max=high)
    text = f"from {low} to {high} replicas"
    if managed_by_others(annotations):
        who = annotations[keys.REPLICAS_MANAGED_BY]
        text += f"; replicas of the MachinePool are managed by {who}"
        return limits, AutoscalingActive.REPLICAS_MANAGED_EXTERNALLY.says(text)
    return limits, AutoscalingActive.REPLICAS_MANAGED_BY_MODULE.says(text)


def managed_by_others(annotations: Mapping[str, str]) -> bool:
    """Whether somebody else manages the number of replicas."""
    value = annotations.get(keys.REPLICAS_MANAGED_BY, "false")
    return value not in ("false", keys.MANAGED_BY_CAPTF)


def _number(text: str) -> int | None:
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if 0 <= number <= _MAX else None


def _invalid(problem: str) -> tuple[Autoscaling, ConditionValue]:
    return Autoscaling(), AutoscalingActive.AUTOSCALING_ANNOTATIONS_INVALID.says(problem)

"""Kubernetes' resource quantities: `500m`, `1.5Gi`, `2e3`."""

import re
from decimal import Decimal

_QUANTITY = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?\Z"
)
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


class QuantityError(ValueError):
    """Text that is not a quantity."""


def parse_quantity(text: str) -> Decimal:
    """Raises `QuantityError`."""
    found = _QUANTITY.match(text)
    if found is None:
        raise QuantityError(
            "quantities must be a number with an optional suffix such as m, k, Mi or Gi"
        )
    number, exponent, suffix = found.groups()
    return Decimal(number + (exponent or "")) * _SUFFIXES.get(suffix or "", Decimal(1))

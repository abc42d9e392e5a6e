"""The key that plan fingerprints are made with (41 §6.2)."""

from collections.abc import Callable

from captfctl.cluster.door import Door
from captfctl.model.owner import Owner

KEY_BYTES = 32


def ensure_plan_key(door: Door, owner: Owner, random_bytes: Callable[[int], bytes]) -> None:
    """Create the Secret unless it exists. It is never rotated: waiting plans depend on it."""
    raise NotImplementedError

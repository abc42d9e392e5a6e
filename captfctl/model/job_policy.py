"""What a Job policy means where nothing is set, and which variables a Job keeps for itself
(api.md: Job policy)."""

from typing import Final

DEADLINE_SECONDS: Final = 3600
LOCK_TIMEOUT_SECONDS: Final = 300

RESERVED_ENV_PREFIXES = ("TF_", "KUBE_", "KUBERNETES_")
RESERVED_ENV = frozenset({"HOME", "TMPDIR", "CHECKPOINT_DISABLE"})


def reserved_env(name: str) -> bool:
    """Whether the Job sets this variable itself: refused at admission, dropped from the Job."""
    return name in RESERVED_ENV or name.startswith(RESERVED_ENV_PREFIXES)

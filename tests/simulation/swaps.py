"""States that somebody replaces behind the manager's back, and puts back when it is told."""

import contextlib
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

from captfctl.cluster.door import Door
from captfctl.cluster.errors import ApiError
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.resources import JOBS, SECRETS
from captfctl.model.terraform import TerraformCluster

ANOTHER = "ffff0000-0000-4000-8000-000000000000"
CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "emptied": lambda state: {"serial": state["serial"] + 1, "resources": []},
    "emptied under its serial": lambda _: {"resources": []},
    "swapped": lambda state: {"serial": state["serial"] + 3, "lineage": ANOTHER, "resources": []},
    "older": lambda state: {"serial": state["serial"] - 1, "resources": []},
}


class Swaps:
    """What was there before, by suffix."""

    def __init__(self, door: Door, rng: random.Random) -> None:
        self._door, self._rng = door, rng
        self._before: dict[str, bytes] = {}

    def swap(self, obj: TerraformCluster) -> str:
        """Replace the state of an object, if nothing runs and it was seen as it is; how."""
        secret = self._secret(obj)
        if secret is None or self._busy(obj):
            return ""
        state = _document(secret)
        seen = json.loads(obj.metadata.annotations.get(keys.LAST_STATE, "{}"))
        explained = seen.get("run") or seen.get("restore")
        known = seen.get("serial") == state["serial"] and not explained
        if not known or not state["resources"]:
            return ""
        self._before[secret.metadata.name] = secret.data[keys.TFSTATE]
        how = self._rng.choice(list(CHANGES))
        self._write(
            secret, gzip.compress(json.dumps(state | CHANGES[how](state)).encode(), mtime=0)
        )
        return how

    def put_back(self, obj: TerraformCluster) -> bool:
        """What was there before the swap, if there was one."""
        secret = self._secret(obj)
        before = self._before.pop(secret.metadata.name, None) if secret is not None else None
        if secret is None or before is None:
            return False
        self._write(secret, before)
        return True

    def forget(self, suffix: str) -> None:
        """A backup was pushed over what was there."""
        self._before.pop(names.state_secret(suffix), None)

    def _busy(self, obj: TerraformCluster) -> bool:
        if obj.status.active_job is not None or keys.BLOCK_MOVE in obj.metadata.annotations:
            return True
        jobs = self._door.list(JOBS, obj.metadata.namespace).items
        return any(not job.status.conditions for job in jobs)

    def _secret(self, obj: TerraformCluster) -> Secret | None:
        namespace, name = obj.key
        suffix = names.state_suffix("TerraformCluster", namespace, name)
        with contextlib.suppress(ApiError):
            return self._door.get(SECRETS, names.state_secret(suffix), namespace)
        return None

    def _write(self, secret: Secret, payload: bytes) -> None:
        secret.data[keys.TFSTATE] = payload
        self._door.update(SECRETS, secret)


def _document(secret: Secret) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(secret.data[keys.TFSTATE]))
    return found

"""Names derived from other names: deterministic, so that creating twice finds the first."""

import hashlib
import re
from functools import lru_cache

from captfctl.model.kinds import KINDS
from captfctl.model.ops import Op

LABEL_VALUE_MAX = 63
NAME_MAX = 253
JOB_NAME_MAX = 57  # with its suffix the pod's name still is a host name

_PLAN_DIGITS = 10
_POD_SUFFIX = 6  # what Kubernetes appends to the name of a Job: `-` and five characters
_ATTEMPT = re.compile(r"a([1-9][0-9]{0,9})")
_ATTEMPT_MAX = 2**31 - 1
_OPS = frozenset(op.value for op in Op)


@lru_cache(maxsize=1024)  # a pass asks for the same few names again and again
def _hex(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def kind_short(kind: str) -> str:
    """`c`, `m` or `mp`. Raises `KeyError` for a kind that has no runs."""
    return KINDS[kind].short


def label_value(text: str) -> str:
    """`text` where it fits a label value, else the first 16 hex digits of its SHA-256."""
    return text if len(text.encode()) <= LABEL_VALUE_MAX else _hex(text, 16)


def state_suffix(kind: str, namespace: str, name: str) -> str:
    """The constant part of an object's state names (state.md: Names of a state). It survives a
    re-creation."""
    return f"{_hex(f'{namespace}/{kind}/{name}', 16)}-{kind_short(kind)}"


def state_secret(suffix: str, chunk: int = 0) -> str:
    """The name of a Secret of the state; chunk 0 is its base."""
    base = f"tfstate-default-{suffix}"
    return f"{base}-part-{chunk}" if chunk else base


def state_lock(suffix: str) -> str:
    """The name of the Lease that locks the state."""
    return f"lock-tfstate-default-{suffix}"


def state_backup(suffix: str, serial: int, digest: str = "") -> str:
    """The name of a backup set (state.md: Backups). `digest` is for a second one of the serial."""
    base = f"captf-state-backup-{suffix}-{serial}"
    return f"{base}-{digest[:8]}" if digest else base


def damaged_state(suffix: str, digest: str) -> str:
    """The name of the set of a state that could not be read and was set aside."""
    return f"captf-state-backup-{suffix}-damaged-{digest[:8]}"


def backup_chunk(backup: str, chunk: int) -> str:
    """The name of a Secret of a backup set."""
    return f"{backup}-part-{chunk}" if chunk else backup


def run_lease(suffix: str) -> str:
    """The name of the Lease that keeps an object's runs apart."""
    return f"captf-run-{suffix}"


def cluster_lease(namespace: str, cluster: str) -> str:
    """The name of the Lease that keeps changes of a cluster and of its machines apart."""
    return f"captf-cluster-{_hex(f'{namespace}/{cluster}', 16)}"


def run_secret(job: str) -> str:
    """The name of the Secret with the inputs of a run."""
    return f"captf-run-{job}"


def _record(prefix: str, kind: str, name: str) -> str:
    full = f"{prefix}-{kind_short(kind)}-{name}"
    if len(full) <= NAME_MAX:
        return full
    return f"{full[:236].rstrip('-.')}-{_hex(full, 16)}"


def attempt_record(kind: str, name: str) -> str:
    """The Secret with what the last started apply renders (state.md: Inputs records)."""
    return _record("captf-inputs", kind, name)


def applied_record(kind: str, name: str) -> str:
    """The Secret with what the last successful apply rendered."""
    return _record("captf-applied", kind, name)


def plan_key(kind: str, name: str) -> str:
    """The Secret with the key of the plan fingerprint."""
    return _record("captf-plankey", kind, name)


def plan(target: str, job: str, plan_hash: str) -> str:
    """The name of the plan that a Job made (plans.md: Names and owners): a Job that is read again
    finds its plan, and the same change of a later Job is another plan."""
    digest = _hex(f"{job}\n{plan_hash}", _PLAN_DIGITS)
    prefix = target.encode()[: NAME_MAX - 1 - _PLAN_DIGITS].decode(errors="ignore")
    return f"{prefix.rstrip('.') if prefix != target else target}-{digest}"


def credentials_mirror(identity: str) -> str:
    """The name of the copies of an identity's Secret."""
    full = f"captf-creds-{identity}"
    return full if len(full) <= NAME_MAX else f"captf-creds-{_hex(identity, 16)}"


def run_hash(inputs_hash: str, op: Op, attempt: int, tick: str) -> str:
    """`hash6` of a Job's name (runs.md: Names of Jobs)."""
    return _hex("\0".join((inputs_hash, op.value, str(attempt), tick)), 6)


def job_name(kind: str, name: str, op: Op, attempt: int, hash6: str) -> str:
    """The name of a Job, with the object's name hashed where it would be too long."""
    short = kind_short(kind)
    full = f"captf-{short}-{name}-{op.value}-a{attempt}-{hash6}"
    if len(full) <= JOB_NAME_MAX:
        return full
    return f"captf-{short}-{_hex(name, 16)}-{op.value}-a{attempt}-{hash6}"


def is_pod_of(job: str, pod: str) -> bool:
    """Whether `pod` is the name of a pod of the Job of that name."""
    return bool(pod) and pod.rpartition("-")[0] == job and len(pod) == len(job) + _POD_SUFFIX


def owns_pod(kind: str, name: str, pod: str) -> bool:
    """Whether `pod` is the name of a pod of one of the object's Jobs.

    Decides whether a state lock is ours, so it accepts only names this code would have built.
    """
    job, _, suffix = pod.rpartition("-")
    if len(suffix) != _POD_SUFFIX - 1:
        return False
    parts = job.rsplit("-", 3)
    if len(parts) != 4:
        return False
    _, op, attempt, hash6 = parts
    number = _ATTEMPT.fullmatch(attempt)
    if number is None or int(number[1]) > _ATTEMPT_MAX or op not in _OPS:
        return False
    return job == job_name(kind, name, Op(op), int(number[1]), hash6)

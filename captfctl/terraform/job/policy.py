"""The Job policy with its built-in values (api.md: Job policy).

A `JobPolicy` here is the merged one (api.md: Merging Job policies): what is unset means the
built-in value.
"""

from captfctl.decide.constants import DEFAULT_FAILED_HISTORY, DEFAULT_SUCCESSFUL_HISTORY
from captfctl.model.job_policy import DEADLINE_SECONDS, LOCK_TIMEOUT_SECONDS
from captfctl.model.ops import Op
from captfctl.model.terraform import JobPolicy

GRACE_SECONDS = 600
STOP_TIMEOUT_SECONDS = GRACE_SECONDS - 30  # the runner needs the rest to report
SERVICE_ACCOUNT = "captf-runner"


def deadline_seconds(policy: JobPolicy) -> int:
    """After how many seconds a Job is ended."""
    return policy.active_deadline_seconds or DEADLINE_SECONDS


def lock_timeout_seconds(policy: JobPolicy) -> int:
    """How many seconds a run waits for the state lock."""
    value = policy.lock_timeout_seconds
    return LOCK_TIMEOUT_SECONDS if value is None else value


def service_account(policy: JobPolicy) -> str:
    """The account that the Jobs run as."""
    return policy.service_account_name or SERVICE_ACCOUNT


def history_limits(policy: JobPolicy) -> tuple[int, int]:
    """How many successful and how many failed Jobs of each operation are kept."""
    ok, failed = policy.successful_jobs_history_limit, policy.failed_jobs_history_limit
    return (
        DEFAULT_SUCCESSFUL_HISTORY if ok is None else max(ok, 0),
        DEFAULT_FAILED_HISTORY if failed is None else max(failed, 0),
    )


def failed_limit(policy: JobPolicy) -> int:
    """The number of failures after which retries come at the slowest pace; at least 1
    (decision.md: Retries and backoff)."""
    return max(history_limits(policy)[1], 1)


def policy_problem(policy: JobPolicy, op: Op) -> str:
    """Why no Job of the operation may start with this policy; empty when one may.

    A destroy and a restore start all the same: a rescue is never locked out by a setting.
    """
    if op in (Op.DESTROY, Op.RESTORE):
        return ""
    lock, deadline = lock_timeout_seconds(policy), deadline_seconds(policy)
    if lock < deadline:
        return ""
    lock_origin = "configured" if policy.lock_timeout_seconds is not None else "the default"
    deadline_origin = "configured" if policy.active_deadline_seconds else "the default"
    return (
        f"lockTimeoutSeconds {lock} ({lock_origin}) must be less than "
        f"activeDeadlineSeconds {deadline} ({deadline_origin}): a Job would end while it still "
        "waits for the state lock; change spec.jobs"
    )

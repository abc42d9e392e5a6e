"""The merged Job policy (api.md: Job policy)."""

import pytest

from captfctl.model.ops import Op
from captfctl.model.terraform import JobPolicy
from captfctl.terraform.job.policy import failed_limit, history_limits, policy_problem


def test_lock_timeout_must_be_less_than_the_deadline():
    problem = policy_problem(
        JobPolicy(lock_timeout_seconds=300, active_deadline_seconds=300), Op.APPLY
    )
    assert "lockTimeoutSeconds 300 (configured)" in problem
    assert "activeDeadlineSeconds 300 (configured)" in problem


def test_problem_tells_which_value_nobody_configured():
    assert "300 (the default)" in policy_problem(JobPolicy(active_deadline_seconds=100), Op.PLAN)
    assert "3600 (the default)" in policy_problem(JobPolicy(lock_timeout_seconds=3600), Op.DRIFT)
    assert policy_problem(JobPolicy(), Op.APPLY) == ""


def test_history_limits_default_to_three_and_zero_counts_as_one_failure():
    assert history_limits(JobPolicy()) == (3, 3)
    none = JobPolicy(successful_jobs_history_limit=0, failed_jobs_history_limit=0)
    assert history_limits(none) == (0, 0)
    assert failed_limit(none) == 1


@pytest.mark.parametrize("op", list(Op))
def test_an_invalid_policy_never_locks_a_rescue_out(op: Op):
    impossible = JobPolicy(active_deadline_seconds=300, lock_timeout_seconds=300)

    assert (policy_problem(impossible, op) == "") is (op in (Op.DESTROY, Op.RESTORE))

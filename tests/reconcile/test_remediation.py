"""Drift that cannot be corrected: the object keeps telling how things are, day after day."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from captfctl.model import keys
from captfctl.model.core import Job
from captfctl.model.terraform import ClusterDrift, DriftAction
from tests.support.cluster_world import World, variables
from tests.support.planning import planned

INTERVAL = timedelta(minutes=30)
JITTER = INTERVAL / 10
RETRY = timedelta(minutes=10)
DRIFT = {"detected": True, "delete": 1, "resources": ["aws_vpc.main"]}


def remediate(obj) -> None:
    obj.spec.drift = ClusterDrift(action=DriftAction.REMEDIATE)


def manual(obj) -> None:
    remediate(obj)
    obj.spec.apply_policy = "Manual"


def blocked(world: World, job: Job) -> None:
    world.runner.fail(job, "plan", kind="blocked")


def failing(world: World, job: Job) -> None:
    world.runner.fail(job, "apply")


def live(
    world: World, span: timedelta, end_apply: Callable[[World, Job], None]
) -> dict[str, list[datetime]]:
    """Passes when they are due; each Job ends after a minute. When which operation ended."""
    until, ends = world.clock.now() + span, {"apply": [], "plan": [], "drift": []}
    while world.clock.now() < until:
        wait = world.run().requeue_after
        for job in world.running():
            wait = 0
            world.advance(minutes=1)
            op = job.metadata.labels[keys.OP]
            ends[op].append(world.clock.now())
            if op == "drift":
                world.runner.succeed(job, drift=DRIFT)
            elif op == "plan":
                world.runner.succeed(job, plan=planned())
            else:
                end_apply(world, job)
        world.advance(seconds=wait)
    return ends


def gaps_of(moments: list[datetime]) -> list[timedelta]:
    return [later - earlier for earlier, later in pairwise(moments)]


@pytest.mark.parametrize("end_apply", [blocked, failing])
def test_a_remediation_that_never_gets_through_starves_no_drift_check(ready: World, end_apply):
    ready.edit(remediate)
    ends = live(ready, timedelta(hours=12), end_apply)

    checks, applies = ends["drift"], ends["apply"]
    gaps = gaps_of(checks)
    assert len(gaps) >= 20
    assert max(gaps) <= INTERVAL + JITTER + timedelta(minutes=2)  # each waits for what runs
    retries = gaps_of(applies)
    assert max(retries) <= INTERVAL + JITTER + timedelta(minutes=4)
    assert ready.reason("DriftDetected") == "True/DriftPending"


def test_a_blocked_remediation_is_tried_every_ten_minutes_beside_the_checks(ready: World):
    ready.edit(remediate)
    applies = live(ready, timedelta(hours=6), blocked)["apply"]

    gaps = gaps_of(applies)
    assert min(gaps) >= RETRY
    assert max(gaps) <= RETRY + timedelta(minutes=2)


def test_a_remediation_that_waits_for_approval_starves_no_drift_check(ready: World):
    ready.edit(manual)
    ends = live(ready, timedelta(hours=6), failing)

    assert len(ends["drift"]) >= 10
    assert ends["apply"] == []
    assert len(ends["plan"]) == 1
    assert ready.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"


def test_the_wait_for_approval_is_told_while_a_drift_check_runs(ready: World):
    ready.edit(manual)
    live(ready, timedelta(hours=1), failing)
    ready.advance(hours=1)
    ready.run()
    for _ in range(2):
        assert ready.active_job().metadata.labels[keys.OP] == "drift"
        assert ready.reason("ApplyJobSucceeded") == "Unknown/PlanAwaitingApproval"
        assert ready.reason("InputsApplied") == "False/AwaitingApproval"
        ready.run()


def test_a_change_of_inputs_that_is_blocked_still_pauses_the_checks(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ends = live(ready, timedelta(hours=6), blocked)

    assert ends["drift"] == []
    assert len(ends["apply"]) > 30

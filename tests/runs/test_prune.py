"""Which finished Jobs are kept (runs.md: Pruning)."""

import pytest

from captfctl.model.ops import Op
from captfctl.runs.jobs import attempt_of
from captfctl.runs.prune import prune
from tests.support.runs import World


def history(outcomes: dict[int, bool], op: Op = Op.APPLY) -> World:
    """Jobs by attempt, the higher the younger."""
    world = World()
    for attempt, ok in outcomes.items():
        world.finished(op, attempt, ok=ok, at=-1000 + attempt, pod=False, secret=False)
    return world


def kept_after(world: World, successful: int, failed: int) -> list[int]:
    jobs = world.reader.jobs_of(world.owner)
    prune(world.door, jobs, successful=successful, failed=failed)
    return sorted(attempt_of(job) for job in world.reader.jobs_of(world.owner))


@pytest.mark.parametrize(
    ("outcomes", "limits", "kept"),
    [
        ({3: True, 2: False, 1: True, 0: False}, (1, 1), [2, 3]),
        ({3: True, 2: False, 1: True, 0: False}, (0, 0), [3]),
        ({3: False, 2: True}, (0, 0), [2, 3]),
        ({5: True, 4: True, 3: True, 2: True, 1: True}, (3, 3), [3, 4, 5]),
        ({3: False, 2: False, 1: False}, (1, -1), [3]),
    ],
)
def test_newest_success_and_a_newer_failure_stay_whatever_the_limits(outcomes, limits, kept):
    outcomes = {attempt + 1: ok for attempt, ok in outcomes.items()}
    assert kept_after(history(outcomes), *limits) == [attempt + 1 for attempt in kept]


def test_ops_do_not_count_against_each_other():
    world = history({1: True})
    world.finished(Op.DRIFT, 2, pod=False, secret=False)
    assert kept_after(world, 1, 1) == [1, 2]


def test_running_jobs_are_never_pruned():
    world = history({1: True, 2: True})
    running = world.add_job(world.run(attempt=3))
    assert kept_after(world, 0, 0) == [2, 3]
    assert running.metadata.name in world.job_names()


def test_an_unreadable_plan_is_kept_as_a_success():
    world = World()
    for attempt in (1, 2):
        world.finished(
            Op.PLAN,
            attempt,
            at=-1000 + attempt,
            pod=False,
            annotations={"captf.io/plan-unreadable": "true"},
        )
    assert kept_after(world, 1, 0) == [2]


def test_the_highest_attempt_of_jobs_of_one_second_stays_so_that_no_name_is_used_again():
    world = World()
    for attempt in (9, 10, 11):
        world.finished(Op.APPLY, attempt, ok=False, at=0, pod=False, secret=False)
    assert len({job.metadata.creation_timestamp for job in world.reader.jobs_of(world.owner)}) == 1

    assert 11 in kept_after(world, successful=1, failed=1)

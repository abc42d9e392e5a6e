"""Asking for a pass: the answer tells that one has concluded since."""

from datetime import timedelta

import pytest

from captfctl.model import keys
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.reconcile import active
from captfctl.runs.lag import Lag
from tests.support.cluster_world import NAME, NAMESPACE, World


def ask(world: World, request: str = "first") -> None:
    patch = {"metadata": {"annotations": {keys.RECONCILE_REQUESTED: request}}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, patch)


def answered(world: World) -> str:
    answer = world.obj.status.answer
    return answer.request if answer is not None else ""


def test_a_pass_with_nothing_to_do_answers_and_writes_nothing_more(ready: World):
    ready.look_at_credentials()
    ready.settle(2)
    assert answered(ready) == ""

    ask(ready)
    ready.run()
    ready.writes.forget()
    ready.settle(3)

    assert answered(ready) == "first"
    assert ready.writes.seen == []


def test_each_request_is_answered(ready: World):
    for request in ("first", "second", "x" * 100):
        ask(ready, request)
        ready.run()
        assert answered(ready) == request[:64]


def test_the_answer_comes_with_the_job_that_was_due(ready: World):
    ready.advance(minutes=40)  # a drift check is due
    ask(ready)
    ready.run()

    obj = ready.obj
    assert answered(ready) == "first"
    assert obj.status.active_job is not None
    assert obj.status.answer.until is None


def test_the_answer_tells_when_a_failure_is_tried_again(world: World):
    world.settle(2)
    [job] = world.running()
    world.runner.fail(job)
    world.settle(2)
    world.advance(seconds=20)
    ask(world)
    world.run()

    left = world.obj.status.answer.until - world.clock.now()
    assert timedelta(seconds=39) <= left <= timedelta(seconds=41)


def test_a_pass_that_cannot_trust_its_cache_does_not_answer(ready: World, monkeypatch):
    ask(ready)
    monkeypatch.setattr(active, "check_lag", lambda *_, **__: Lag.LAGGING)
    ready.run()
    assert answered(ready) == ""

    monkeypatch.undo()
    ready.run()
    assert answered(ready) == "first"


@pytest.mark.parametrize("paused", [False, True], ids=["without owner", "paused"])
def test_an_object_that_may_not_go_on_answers(ready: World, paused: bool):
    if paused:
        ready.edit_cluster(lambda cluster: setattr(cluster.spec, "paused", True))
    else:
        ready.door.delete(CLUSTERS, NAME, NAMESPACE)
        ready.edit(lambda obj: setattr(obj.metadata, "owner_references", []))
    ask(ready)
    ready.settle(2)
    assert answered(ready) == "first"

"""A state that is not the one that was left is not believed
(state.md: A state that is not the one we left)."""

import gzip
import json
from typing import Any

import pytest

from captfctl.model import keys, names
from captfctl.model.ops import Op
from captfctl.model.resources import JOBS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import DeletionPolicy
from tests.support.cluster_world import NAMESPACE, World, annotated, variables

LINEAGE = "0e0f0000-0000-4000-8000-000000000000"
ANOTHER = "ffff0000-0000-4000-8000-000000000000"
EMPTIED = {"serial": 9, "resources": []}
OLDER = {"serial": 1}
SWAPPED = {"lineage": ANOTHER, "serial": 9}
REWRITTEN = {"resources": [{"mode": "managed"}, {"mode": "managed"}]}
UNBELIEVED = [
    pytest.param(EMPTIED, id="emptied"),
    pytest.param(OLDER, id="older"),
    pytest.param(SWAPPED, id="of another lineage"),
    pytest.param(REWRITTEN, id="rewritten under its serial"),
]


@pytest.fixture
def left(ready: World) -> World:
    """An object that has left a state of serial 2."""
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    ready.events.clear()
    return ready


def document(world: World) -> dict[str, Any]:
    secret = world.secret(names.state_secret(world.owner.suffix))
    assert secret is not None
    return json.loads(gzip.decompress(secret.data[keys.TFSTATE]))


def rewrite(world: World, changes: dict[str, Any]) -> None:
    """What somebody does with kubectl: the Secret stays, with its annotations."""
    secret = world.secret(names.state_secret(world.owner.suffix))
    assert secret is not None
    secret.data[keys.TFSTATE] = gzip.compress(json.dumps(document(world) | changes).encode())
    world.door.update(SECRETS, secret)


def drop_state(world: World) -> None:
    name = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, name, NAMESPACE)


def forget_status(world: World) -> None:
    obj = world.obj
    obj.status = type(obj.status)(observed_generation=1)
    world.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")


def remembered(world: World) -> dict[str, Any]:
    return json.loads(world.obj.metadata.annotations[keys.LAST_STATE])


@pytest.mark.parametrize("changes", UNBELIEVED)
@pytest.mark.parametrize("status", ["kept", "cleared"])
def test_a_state_that_was_replaced_holds_everything(left: World, changes, status):
    rewrite(left, changes)
    if status == "cleared":
        forget_status(left)
    left.edit(variables('{"region":"eu-3"}'))
    assert left.settle(3).requeue_after == 60
    assert left.reason("StateReadable") == "False/StateReplaced"
    assert left.running() == []
    assert left.events.warnings().count("StateReplaced") == 1


def test_the_message_has_the_evidence_and_the_ways_out(left: World):
    rewrite(left, SWAPPED | {"resources": []})
    left.run()
    message = left.condition("StateReadable").message
    assert f"lineage {LINEAGE}, serial 2 with 1 resource" in message
    assert f"lineage {ANOTHER}, serial 9 with 0 resources" in message
    assert f"captf.io/accept-state={ANOTHER}/9" in message
    assert names.state_secret(left.owner.suffix) in message


@pytest.mark.parametrize("changes", UNBELIEVED)
def test_a_deletion_neither_skips_its_destroy_nor_destroys_with_another_state(left: World, changes):
    rewrite(left, changes)
    left.delete()
    assert left.settle(3).requeue_after == 60
    assert not left.gone
    assert left.running() == []
    message = left.condition("StateReadable").message
    assert "the deletion is held" in message
    assert "Retain" in message


def test_a_held_deletion_goes_on_with_the_state_that_was_put_back(left: World):
    before = document(left)
    rewrite(left, EMPTIED)
    left.delete()
    left.settle(2)
    rewrite(left, before)
    left.settle(2)
    assert left.active_job().metadata.labels[keys.OP] == "destroy"


def test_a_held_deletion_can_be_called_off_its_destroy(left: World):
    rewrite(left, SWAPPED)
    left.delete()
    left.run()
    left.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    left.settle(2)
    assert left.gone


@pytest.mark.parametrize("changes", UNBELIEVED)
def test_a_person_can_accept_exactly_the_state_that_is_there(left: World, changes):
    rewrite(left, changes)
    left.run()
    found = document(left)
    other = f"{found['lineage']}/{found['serial'] + 1}"
    left.edit(annotated({keys.ACCEPT_STATE: other}))
    left.run()
    assert left.reason("StateReadable") == "False/StateReplaced"
    left.edit(annotated({keys.ACCEPT_STATE: f"{found['lineage']}/{found['serial']}"}))
    left.run()
    assert left.reason("StateReadable") == "True/StateRead"
    assert keys.ACCEPT_STATE not in left.obj.metadata.annotations
    assert left.events.reasons.count("StateAccepted") == 1
    left.writes.forget()
    left.settle(2)
    assert left.writes.seen == []


def test_a_person_may_push_a_state_of_a_higher_serial(left: World):
    rewrite(left, {"serial": 7, "resources": [{"mode": "managed"}] * 3})
    left.run()
    assert left.reason("StateReadable") == "True/StateRead"
    assert (remembered(left)["serial"], remembered(left)["resources"]) == (7, 3)


@pytest.mark.parametrize("op", [Op.APPLY, Op.DRIFT, Op.REFRESH])
def test_a_run_of_ours_may_leave_nothing(left: World, op: Op):
    if op is Op.APPLY:
        left.edit(variables('{"region":"eu-3"}'))
    else:
        left.advance(hours=1)
    left.run()
    job = left.active_job()
    left.runner.write_state(job, {}, resources=0)
    left.runner.end(job, ok=False, result={"op": op.value})
    left.run()
    assert left.reason("StateReadable") == "True/StateRead"
    assert remembered(left)["resources"] == 0


def test_a_run_that_vanished_may_have_left_nothing(left: World):
    left.edit(variables('{"region":"eu-3"}'))
    left.run()
    job = left.active_job()
    left.runner.write_state(job, {}, resources=0)
    left.door.delete(JOBS, job.metadata.name, NAMESPACE)
    left.settle(2)
    assert left.reason("StateReadable") == "True/StateRead"


def test_a_run_of_ours_explains_no_other_lineage_and_no_older_state(left: World):
    left.edit(variables('{"region":"eu-3"}'))
    left.run()
    left.runner.end(left.active_job(), ok=False, result=None)
    rewrite(left, SWAPPED)
    left.run()
    assert left.reason("StateReadable") == "False/StateReplaced"


def test_what_is_remembered_goes_with_a_move(left: World):
    """The object is created again elsewhere, with its annotations and Secrets, without status."""
    obj = left.obj
    obj.metadata.annotations[keys.LAST_STATE] = json.dumps({**remembered(left), "uid": "before"})
    left.door.update(TERRAFORM_CLUSTERS, obj)
    for job in left.jobs():
        left.door.delete(JOBS, job.metadata.name, NAMESPACE)
    forget_status(left)
    left.settle(3)
    assert left.reason("StateReadable") == "True/StateRead"
    assert remembered(left)["uid"] == left.obj.metadata.uid
    rewrite(left, OLDER)
    left.run()
    assert left.reason("StateReadable") == "False/StateReplaced"


def test_a_moved_object_whose_state_stayed_behind_has_lost_it(world: World):
    """Its first apply failed half-way, so nothing but the memory tells that anything exists."""
    world.settle(2)
    world.runner.fail(world.active_job(), applied=True)
    world.settle(2)
    for job in world.jobs():
        world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    obj = world.obj
    obj.metadata.annotations[keys.LAST_STATE] = json.dumps({**remembered(world), "uid": "before"})
    world.door.update(TERRAFORM_CLUSTERS, obj)
    forget_status(world)
    drop_state(world)
    world.settle(3)
    assert world.reason("StateReadable") == "False/StateLost"
    assert "serial 1 with 1 resource was there" in world.condition("StateReadable").message
    assert world.running() == []


def test_an_ownerless_object_whose_state_had_resources_is_not_released(world: World):
    world.settle(2)
    world.runner.fail(world.active_job(), applied=True)
    world.settle(2)
    for job in world.jobs():
        world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    world.edit(lambda obj: obj.metadata.owner_references.clear())
    drop_state(world)
    world.delete()
    world.settle(3)
    assert not world.gone
    assert world.reason("StateReadable") == "False/StateLost"


def test_an_object_created_again_from_what_kubectl_told_begins_from_nothing(left: World):
    exported = left.obj
    left.delete()
    left.settle(2)
    left.runner.succeed(left.active_job())
    left.settle(3)
    assert left.gone
    for job in left.jobs():
        left.door.delete(JOBS, job.metadata.name, NAMESPACE)
    exported.metadata.uid = exported.metadata.resource_version = ""
    exported.metadata.finalizers, exported.metadata.deletion_timestamp = [], None
    exported.status = type(exported.status)()
    left.create(TERRAFORM_CLUSTERS, exported)
    left.settle(3)
    left.runner.succeed(left.active_job())
    left.settle(2)
    assert left.reason("StateReadable") == "True/StateRead"


def test_annotations_that_were_replaced_leave_the_serial_that_the_status_tells(left: World):
    left.edit(annotated({keys.LAST_STATE: None}))
    rewrite(left, OLDER)
    left.run()
    assert left.reason("StateReadable") == "False/StateReplaced"
    assert "There was serial 2;" in left.condition("StateReadable").message


def test_whatever_stands_in_the_annotation_a_pass_goes_on(left: World):
    left.edit(annotated({keys.LAST_STATE: "[]"}))
    left.run()
    assert left.reason("StateReadable") == "True/StateRead"
    assert remembered(left)["serial"] == 2


def test_remembering_costs_no_request_of_its_own(left: World):
    left.edit(variables('{"region":"eu-3"}'))
    left.run()
    left.runner.succeed(left.active_job())
    left.writes.forget()
    left.run()
    assert left.writes.seen.count("patch terraformclusters") == 2  # metadata and status

"""Owner, finalizer, pause, foreground deletion and external management
(reconcile.md: The preamble)."""

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.kinds import CLUSTER
from captfctl.model.meta import ObjectMeta
from captfctl.model.resources import CLUSTERS, SECRETS, TERRAFORM_CLUSTERS
from tests.support.cluster_world import (
    NAME,
    NAMESPACE,
    World,
    annotated,
    terraform_cluster,
    variables,
)
from tests.support.doors import Overridden


@pytest.fixture
def ownerless() -> World:
    world = World().populate()
    world.delete()
    world.create(TERRAFORM_CLUSTERS, terraform_cluster())
    return world


def paused(value: bool):
    def change(owner):
        owner.spec.paused = value

    return change


def test_without_an_owner_it_waits_and_warns_nobody(ownerless: World):
    assert ownerless.run().requeue_after == 30
    assert ownerless.reason("DependenciesReady") == "Unknown/WaitingForOwner"
    assert ownerless.reason("Ready") == "Unknown/ReadyUnknown"
    assert ownerless.condition("Ready").message.startswith("WaitingForOwner: ")
    assert ownerless.events.warnings() == []
    assert ownerless.obj.metadata.finalizers == []


def test_a_closed_gate_is_written_once(ownerless: World):
    ownerless.run()
    ownerless.writes.forget()
    ownerless.settle(3)
    assert ownerless.writes.seen == []


def test_an_owner_that_refers_to_another_object_is_refused(world: World):
    world.edit_cluster(lambda owner: setattr(owner.spec.infrastructure_ref, "name", "other"))
    assert world.run().requeue_after == 0
    assert world.reason("DependenciesReady") == "False/OwnerMismatch"
    assert "infrastructureRef" in world.condition("DependenciesReady").message
    assert world.jobs() == []


def test_an_owner_reference_with_another_uid_is_refused_with_one_warning(world: World):
    def wrong(obj):
        obj.metadata.owner_references[0].uid = "00000000-0000-4000-8000-000000000000"

    world.edit(wrong)
    world.settle(3)
    assert world.reason("DependenciesReady") == "False/OwnerMismatch"
    assert "UID" in world.condition("DependenciesReady").message
    assert world.events.warnings() == ["ConditionChanged"]


def test_a_label_that_names_another_cluster_is_refused(world: World):
    world.edit(lambda obj: obj.metadata.labels.update({keys.CLUSTER_NAME: "other"}))
    world.run()
    assert world.reason("DependenciesReady") == "False/OwnerMismatch"
    assert "label" in world.condition("DependenciesReady").message


def test_a_mismatching_owner_does_not_stop_a_destroy(ready: World):
    ready.edit_cluster(lambda owner: setattr(owner.spec.infrastructure_ref, "name", "other"))
    ready.delete()
    ready.run()
    assert ready.job_ops() == ["apply", "destroy"]


def test_a_provisioned_object_stays_ready_when_its_owner_goes(ready: World):
    ready.door.delete(CLUSTERS, NAME, NAMESPACE)
    assert ready.settle().requeue_after > 0
    assert ready.reason("DependenciesReady") == "False/OwnerNotFound"
    assert ready.reason("Ready") == "True/Ready"


def test_no_run_starts_for_an_object_whose_owner_is_gone(ready: World):
    ready.door.delete(CLUSTERS, NAME, NAMESPACE)
    ready.advance(hours=2)
    assert ready.run().requeue_after == 30
    assert ready.running() == []


def test_ownerless_and_never_applied_is_released_at_once(world: World):
    world.run()
    world.edit(lambda obj: obj.metadata.owner_references.clear())
    world.delete()
    world.run()
    assert world.gone
    assert world.events.reasons == ["FinalizerRemoved"]


def test_ownerless_with_a_state_that_cannot_be_read_is_kept(world: World):
    world.run()
    world.edit(lambda obj: obj.metadata.owner_references.clear())
    world.delete()

    def broken(resource, namespace="", *, labels="", **_):
        raise Unavailable("the server is having a bad day")

    door = Overridden(world.writes, list={SECRETS.plural: broken})
    with pytest.raises(Unavailable):
        world.run(world.env(door))
    assert not world.gone


def test_ownerless_with_a_backup_is_held(world: World):
    world.run()
    suffix = world.owner.suffix
    backup = Secret(
        metadata=ObjectMeta(
            name=f"captf-state-backup-{suffix}-1",
            namespace=NAMESPACE,
            labels={keys.STATE_BACKUP: "true", keys.STATE_BACKUP_SUFFIX: suffix},
        )
    )
    world.create(SECRETS, backup)
    world.edit(lambda obj: obj.metadata.owner_references.clear())
    world.delete()
    world.run()
    assert world.reason("StateReadable") == "False/StateLost"
    assert not world.gone


def test_ownerless_with_a_live_run_lease_is_kept(world: World):
    world.settle(2)
    job = world.active_job()
    world.edit(lambda obj: obj.metadata.owner_references.clear())
    world.delete()
    world.run()
    assert not world.gone
    assert world.active_job().metadata.name == job.metadata.name


def test_a_foreground_deletion_is_converted_so_that_the_destroy_survives(ready: World):
    ready.edit(lambda obj: obj.metadata.finalizers.append(keys.FOREGROUND_DELETION))
    ready.delete()
    ready.settle(2)
    assert keys.FOREGROUND_DELETION not in ready.obj.metadata.finalizers
    assert CLUSTER.finalizer in ready.obj.metadata.finalizers
    assert ready.events.reasons.count("ForegroundDeletionConverted") == 1
    assert ready.running()[0].metadata.labels[keys.OP] == "destroy"


def test_an_externally_managed_object_is_not_touched(world: World):
    world.edit(annotated({keys.MANAGED_BY: "somebody"}))
    world.writes.forget()
    world.settle(2)
    assert world.writes.seen == []


def test_an_externally_managed_object_leaves_its_state_behind(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    job = ready.active_job()
    ready.edit(annotated({keys.MANAGED_BY: "somebody"}))
    ready.delete()
    owner = ready.owner
    assert ready.run().requeue_after == 30
    ready.runner.succeed(job)
    ready.run()
    assert ready.gone
    state = ready.secret(names.state_secret(owner.suffix))
    assert state is not None
    assert state.metadata.labels[keys.RETAINED_FROM_UID] == owner.uid
    assert state.metadata.owner_references == []
    assert ready.events.reasons[-1] == "ExternallyManagedReleased"
    assert "1 state" in ready.events.notes[-1].note


def test_an_externally_managed_object_without_our_finalizer_is_left_alone(world: World):
    world.edit(annotated({keys.MANAGED_BY: "somebody"}))
    world.edit(lambda obj: obj.metadata.finalizers.append("example.com/other"))
    world.delete()
    world.writes.forget()
    assert world.run().requeue_after == 0
    assert world.writes.seen == []


def test_a_paused_object_starts_nothing(world: World):
    world.edit_cluster(paused(True))
    world.settle()
    assert world.reason("Paused") == "True/Paused"
    assert "spec.paused" in world.condition("Paused").message
    assert world.jobs() == []
    assert world.events.reasons == ["Paused"]
    world.edit_cluster(paused(False))
    assert world.run().requeue_after == 0
    assert world.events.reasons == ["Paused", "Resumed"]
    world.run()
    assert world.job_ops() == ["apply"]


def test_the_objects_own_annotation_pauses_too(world: World):
    world.edit(annotated({keys.PAUSED: ""}))
    world.settle()
    assert keys.PAUSED in world.condition("Paused").message
    assert world.jobs() == []


def test_a_paused_object_keeps_the_books_and_lets_a_move_through(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    job = ready.active_job()
    ready.edit_cluster(paused(True))
    ready.settle(2)
    assert keys.BLOCK_MOVE in ready.obj.metadata.annotations
    ready.runner.fail(job, "apply")
    before = ready.condition("InputsApplied")
    ready.settle(2)
    assert keys.BLOCK_MOVE not in ready.obj.metadata.annotations
    assert ready.obj.status.active_job is None
    assert ready.reason("ApplyJobSucceeded") == "False/ApplyFailed"
    assert ready.condition("InputsApplied") == before
    assert ready.leases() == []
    assert ready.running() == []


def test_a_paused_deletion_says_that_it_waits_and_goes_on_afterwards(ready: World):
    ready.edit_cluster(paused(True))
    ready.delete()
    ready.settle()
    assert "no longer paused" in ready.condition("Deleting").message
    assert ready.running() == []
    ready.edit_cluster(paused(False))
    ready.settle()
    assert ready.running()[0].metadata.labels[keys.OP] == "destroy"
    assert names.run_secret(ready.running()[0].metadata.name) in ready.secrets()


def test_an_object_that_somebody_else_still_holds_is_left_alone_once_it_is_ours_no_more(
    ready: World,
):
    ready.edit(lambda obj: obj.metadata.finalizers.append("example.com/other"))
    ready.delete()
    ready.run()
    ready.runner.succeed(ready.running()[0])
    ready.run()
    assert ready.obj.metadata.finalizers == ["example.com/other"]
    ready.writes.forget()
    ready.settle()
    assert ready.writes.seen == []

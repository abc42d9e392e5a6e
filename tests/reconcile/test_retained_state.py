"""What an object keeps for a later one, and what becomes of it (state.md: Retained state)."""

import pytest

from captfctl.cluster.errors import Unavailable
from captfctl.model import keys, names
from captfctl.model.core import Secret
from captfctl.model.resources import CLUSTERS, SECRETS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import DeletionPolicy
from tests.reconcile.test_backups import new_serials, sets
from tests.support.cluster_world import NAME, NAMESPACE, World, annotated, terraform_cluster
from tests.support.faults import Crash, HookedDoor, crashing_after


@pytest.fixture
def backed(ready: World) -> World:
    new_serials(ready, 3)
    return ready


def retain(world: World) -> str:
    """Delete the object and keep what it has; its UID."""
    world.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    uid: str = world.obj.metadata.uid
    world.delete()
    return uid


def recreate(world: World, *, adopt: bool) -> None:
    owner = world.door.get(CLUSTERS, NAME, NAMESPACE)
    again = terraform_cluster(owner, adopt_retained_state=adopt)
    world.create(TERRAFORM_CLUSTERS, again)
    world.events.clear()


def kept(world: World) -> list[Secret]:
    found = world.door.list(SECRETS, NAMESPACE, labels=keys.RETAINED_FROM_UID).items
    return sorted(found, key=lambda secret: secret.metadata.name)


def test_state_backups_and_records_are_kept_and_can_be_deleted_plainly(backed: World):
    uid = retain(backed)
    backed.settle(2)

    assert backed.gone
    suffix = names.state_suffix("TerraformCluster", NAMESPACE, NAME)
    assert [secret.metadata.name for secret in kept(backed)] == [
        names.applied_record("TerraformCluster", NAME),
        names.attempt_record("TerraformCluster", NAME),
        *(names.state_backup(suffix, serial) for serial in (1, 2, 3)),
        names.state_secret(suffix),
    ]
    for secret in kept(backed):
        assert secret.metadata.labels[keys.RETAINED_FROM_UID] == uid
        assert (secret.metadata.owner_references, secret.metadata.finalizers) == ([], [])
    assert backed.leases() == []
    (note,) = [n.note for n in backed.events.notes if n.reason == "InfrastructureRetained"]
    assert "1 state, 3 backup and 2 inputs Secrets" in note

    for secret in kept(backed):
        backed.door.delete(SECRETS, secret.metadata.name, NAMESPACE)
    assert kept(backed) == []


def test_a_later_object_touches_nothing_of_it(backed: World):
    uid = retain(backed)
    backed.settle(2)
    before = kept(backed)
    recreate(backed, adopt=False)
    backed.edit(annotated({keys.RESTORE_STATE: "2"}))
    backed.settle(4)

    assert backed.reason("StateReadable") == "False/RetainedStateFound"
    assert uid in backed.condition("StateReadable").message
    assert kept(backed) == before
    assert backed.running() == []
    assert backed.obj.status.state_backups == []
    assert backed.obj.status.observed_state_serial == 0


def test_an_adopted_state_is_owned_protected_and_restorable(backed: World):
    retain(backed)
    backed.settle(2)
    recreate(backed, adopt=True)
    backed.settle(6)

    assert kept(backed) == []
    assert "RetainedStateAdopted" in backed.events.reasons
    assert backed.reason("StateReadable") == "True/StateRead"
    uid = backed.obj.metadata.uid
    assert [backup.serial for backup in sets(backed)] == [3, 2, 1]
    for backup in sets(backed):
        (meta,) = backup.secrets
        assert [ref.uid for ref in meta.owner_references] == [uid]
        assert meta.finalizers == [keys.STATE_PROTECTION]
    backed.edit(annotated({keys.RESTORE_STATE: "2"}))
    backed.run()
    assert "restore" in backed.job_ops()


def test_a_later_object_that_goes_leaves_it_alone_whatever_its_policy(backed: World):
    retain(backed)
    backed.settle(2)
    before = kept(backed)
    recreate(backed, adopt=False)
    backed.settle(4)
    backed.delete()
    backed.settle(2)

    assert backed.gone
    assert kept(backed) == before


def test_deleted_secrets_let_a_later_object_start_afresh(backed: World):
    retain(backed)
    backed.settle(2)
    for secret in kept(backed):
        backed.door.delete(SECRETS, secret.metadata.name, NAMESPACE)
    recreate(backed, adopt=False)
    backed.settle(4)

    assert ("apply", "NoState") in backed.metrics.decisions
    assert backed.active_job().metadata.labels[keys.OP] == "apply"


def test_a_paused_object_keeps_nothing_yet(backed: World):
    backed.edit(annotated({keys.PAUSED: ""}))
    backed.run()
    retain(backed)
    backed.settle(3)

    assert not backed.gone
    assert kept(backed) == []


def test_an_object_that_cannot_keep_everything_stays(backed: World):
    retain(backed)

    def before(name: str, resource: object) -> None:
        if name == "patch" and getattr(resource, "plural", "") == "secrets":
            raise Unavailable("down")

    with pytest.raises(Unavailable):
        backed.run(backed.env(door=HookedDoor(backed.writes, before=before)))
    assert not backed.gone

    backed.settle(2)
    assert backed.gone
    assert len(kept(backed)) == 6


@pytest.mark.parametrize("writes", range(1, 12))
def test_a_manager_killed_after_any_write_keeps_all_of_it(backed: World, writes: int):
    retain(backed)
    try:
        backed.run(backed.env(door=crashing_after(backed.door, writes)))
    except Crash:
        backed.settle(3)

    assert backed.gone
    assert len(kept(backed)) == 6


def test_a_retain_that_is_called_off_leaves_no_label(backed: World):
    retain(backed)
    with pytest.raises(Crash):
        backed.run(backed.env(door=crashing_after(backed.door, 4)))
    assert kept(backed)
    backed.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.DESTROY))
    backed.settle(2)

    assert backed.active_job().metadata.labels[keys.OP] == "destroy"
    assert kept(backed) == []

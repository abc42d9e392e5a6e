"""A state that a run could not store is stored by the next, or a person decides
(state.md: A state that a run could not store)."""

import contextlib
import json

import pytest

from captfctl.cluster.errors import Conflict, Forbidden
from captfctl.model import keys, names
from captfctl.model.core import Job
from captfctl.model.resources import JOBS, PODS, SECRETS
from captfctl.model.terraform import DeletionPolicy
from captfctl.terraform.state.backups import BackupSet, read_backup, read_backups
from captfctl.terraform.state.protected import encode_data
from captfctl.terraform.state.reader import Content
from runner import kept, wire
from tests.support.cluster_world import NAMESPACE, World, annotated, variables
from tests.support.faults import failing
from tests.support.stale import Stale

LEFT = {
    "version": 4,
    "serial": 7,
    "lineage": "0e0f0000-0000-4000-8000-000000000000",
    "resources": [{"mode": "managed"}, {"mode": "managed"}],
}
UNSAVED = {"serial": 7, "lineage": LEFT["lineage"], "resources": 2}
FAILED = {"kind": "step", "step": "apply", "tail": "Error: Failed to save state"}


def leave(world: World, job: Job, *, in_secrets: bool, told: bool = True) -> None:
    """The run ends without having stored its state. `told`: it lived to write a result."""
    if in_secrets:
        place = kept.Place.of_arguments(job.spec.template.spec.containers[0].args)
        assert place is not None
        for document in kept.documents(json.dumps(LEFT).encode(), place):
            world.door.create(SECRETS.untyped(), document, NAMESPACE)
    steps = [
        {"name": "apply", "exit": 1, "seconds": 1.0},
        {"name": "state-push", "exit": 1, "seconds": 9.0},
    ]
    result = {"op": "apply", "steps": steps, "error": FAILED, "unsaved": UNSAVED}
    world.runner.end(job, ok=False, result=result if told else None)


def kept_secrets(world: World) -> list[str]:
    return [name for name in world.secrets() if name.startswith("captf-unsaved-")]


def offered(world: World) -> str:
    """The value that the condition tells a person to accept the stored state with."""
    message = world.condition("StateReadable").message
    return message.partition(f"{keys.ACCEPT_STATE}=")[2].split()[0]


def arguments(job: Job) -> list[str]:
    return job.spec.template.spec.containers[0].args


def mounted(job: Job) -> list[str]:
    """Where the configuration's volume puts Secrets."""
    (config,) = [v for v in job.spec.template.spec.volumes if v.name == "config"]
    sources = config.projected.sources if config.projected else []
    return [
        f"{source.secret.name} {item.path}"
        for source in sources
        if source.secret
        for item in source.secret.items
    ]


@pytest.fixture
def first(world: World) -> Job:
    """The first apply of a cluster runs."""
    world.settle(2)
    return world.active_job()


@pytest.fixture
def second(ready: World) -> Job:
    """A cluster that was applied changes."""
    ready.edit(variables('{"region":"eu-2"}'))
    ready.run()
    return ready.active_job()


@pytest.mark.parametrize("told", [True, False], ids=["told by the run", "found by the node"])
def test_the_next_run_of_a_first_apply_stores_the_kept_state_first(world: World, first: Job, told):
    leave(world, first, in_secrets=True, told=told)
    world.settle(2)
    assert world.reason("StateReadable") == "False/StateNotSaved"
    message = world.condition("StateReadable").message
    assert first.metadata.name in message
    assert "serial 7 with 2 resources" in message
    assert world.events.warnings().count("StateNotSaved") == 1
    world.advance(minutes=1)
    world.settle(2)
    retry = world.active_job()
    assert "--unsaved-chunks=1" in arguments(retry)
    base = wire.kept_secret(world.owner.suffix)
    assert mounted(retry) == [f"{base} unsaved/0"]


def recovered(world: World, job: Job, **more: object) -> None:
    steps = [{"name": name, "exit": 0, "seconds": 0.1} for name in ("init", "state-recover")]
    if more:
        world.runner.end(job, ok=False, result={"op": "apply", "steps": steps, **more})
    else:
        world.runner.succeed(job, steps=steps)


def test_a_kept_state_goes_when_a_run_has_stored_it(world: World, first: Job):
    leave(world, first, in_secrets=True)
    world.settle(2)
    world.advance(minutes=1)
    world.settle(2)
    recovered(world, world.active_job())
    world.settle(3)
    assert kept_secrets(world) == []
    assert world.reason("StateReadable") == "True/StateRead"
    assert "UnsavedStateStored" in world.events.reasons
    assert "True" in world.reason("Ready")


def test_it_goes_also_when_that_run_failed_afterwards(world: World, first: Job):
    leave(world, first, in_secrets=True)
    world.settle(2)
    world.advance(minutes=1)
    world.settle(2)
    retry = world.active_job()
    world.runner.write_state(retry, {}, resources=2)
    recovered(world, retry, error={**FAILED, "step": "validate"})
    world.settle(2)
    assert kept_secrets(world) == []
    assert world.reason("StateReadable") == "True/StateRead"


def test_a_kept_state_that_the_run_itself_stored_in_the_end_goes(ready: World, second: Job):
    """Its last request, which removes the Secrets, did not get through."""
    leave(ready, second, in_secrets=True, told=False)
    pod = ready.door.get(PODS, f"{second.metadata.name}-x7k2p", NAMESPACE)
    steps = [
        {"name": "apply", "exit": 1, "seconds": 1.0},
        {"name": "state-push", "exit": 0, "seconds": 9.0},
    ]
    document = {"version": 1, "op": "apply", "steps": steps, "error": FAILED}
    pod.status.container_statuses[0].state.terminated.message = json.dumps(document)
    ready.door.update(PODS, pod, subresource="status")
    ready.settle(2)
    assert kept_secrets(ready) == []
    assert ready.reason("StateReadable") == "True/StateRead"


def test_a_changed_object_with_a_kept_state_stores_it_before_its_new_inputs(
    ready: World, second: Job
):
    leave(ready, second, in_secrets=True)
    ready.edit(variables('{"region":"eu-3"}'))
    ready.settle(2)
    assert "--unsaved-chunks=1" in arguments(ready.active_job())


def test_a_vanished_state_is_not_lost_while_one_is_kept(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    name = names.state_secret(ready.owner.suffix)
    ready.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    ready.door.delete(SECRETS, name, NAMESPACE)
    ready.edit(variables('{"region":"eu-3"}'))
    ready.settle(2)
    assert ready.reason("StateReadable") == "False/StateNotSaved"
    assert "--unsaved-chunks=1" in arguments(ready.active_job())


def test_a_state_that_was_stored_in_part_is_replaced_by_the_kept_one(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    secret = ready.secret(names.state_secret(ready.owner.suffix))
    assert secret is not None
    secret.data[keys.TFSTATE] = secret.data[keys.TFSTATE][:40]
    ready.door.update(SECRETS, secret)
    ready.edit(variables('{"region":"eu-3"}'))
    ready.settle(2)
    assert ready.reason("StateReadable") == "False/StateNotSaved"
    assert "--unsaved-chunks=1" in arguments(ready.active_job())


@pytest.mark.parametrize("resources", [None, 0], ids=["no state", "an empty state"])
def test_a_deletion_destroys_what_only_the_kept_state_knows(world: World, first: Job, resources):
    if resources is not None:
        world.runner.write_state(first, {}, resources=resources)
    leave(world, first, in_secrets=True)
    world.settle(2)
    world.delete()
    world.settle(2)
    job = world.active_job()
    assert job.metadata.labels[keys.OP] == "destroy"
    assert "--unsaved-chunks=1" in arguments(job)
    recovered(world, job)
    world.settle(3)
    assert world.gone
    assert kept_secrets(world) == []


def test_a_state_that_turns_up_after_the_pass_looked_is_stored_first(ready: World, second: Job):
    """An agent that was away finds it on its node: the start confirms live that there is none."""
    ready.runner.end(second, ok=False, result=None, pod=False)
    ready.settle(2)
    assert ready.running() == []
    place = kept.Place.of_arguments(arguments(second))
    assert place is not None
    (document,) = kept.documents(json.dumps(LEFT).encode(), place)
    ready.door.create(SECRETS.untyped(), document, NAMESPACE)
    ready.edit(variables('{"region":"eu-3"}'))
    behind = _Behind(ready.cache, wire.kept_secret(ready.owner.suffix))
    with pytest.raises(Conflict, match="turned up meanwhile"):
        ready.run(ready.env(cache=behind))
    assert ready.running() == []
    ready.settle(2)
    assert "--unsaved-chunks=1" in arguments(ready.active_job())


class _Behind:
    """A cache that does not show one Secret yet."""

    def __init__(self, cache: object, missing: str) -> None:
        self._cache, self._missing = cache, missing

    def __getattr__(self, name: str):
        return getattr(self._cache, name)

    def secret(self, namespace: str, name: str):
        return None if name == self._missing else self._cache.secret(namespace, name)


# Neither stored nor kept.


@pytest.mark.parametrize("deleting", [False, True])
def test_a_state_that_is_kept_nowhere_holds_everything(ready: World, second: Job, deleting):
    leave(ready, second, in_secrets=False)
    ready.edit(variables('{"region":"eu-3"}'))
    if deleting:
        ready.delete()
    assert ready.settle(3).requeue_after == 60
    assert ready.running() == []
    assert not ready.gone
    assert ready.reason("StateReadable") == "False/UnsavedStateLost"
    message = ready.condition("StateReadable").message
    assert second.metadata.name in message
    assert f"{keys.ACCEPT_STATE}=" in message
    assert ("Retain" in message) is deleting
    assert ready.events.warnings().count("StateNotSaved") == 1


def test_it_holds_also_once_its_job_is_pruned(ready: World, second: Job):
    leave(ready, second, in_secrets=False)
    ready.settle(2)
    ready.door.delete(JOBS, second.metadata.name, NAMESPACE)
    ready.edit(variables('{"region":"eu-3"}'))
    ready.settle(2)
    assert ready.reason("StateReadable") == "False/UnsavedStateLost"
    assert ready.running() == []


def test_a_person_accepts_the_state_that_is_stored(ready: World, second: Job):
    leave(ready, second, in_secrets=False)
    ready.settle(2)
    value = offered(ready)
    ready.edit(annotated({keys.ACCEPT_STATE: "another/1"}))
    ready.settle(2)
    assert ready.reason("StateReadable") == "False/UnsavedStateLost"
    ready.edit(annotated({keys.ACCEPT_STATE: value}))
    ready.settle(2)
    assert ready.reason("StateReadable") == "True/StateRead"
    assert keys.ACCEPT_STATE not in ready.obj.metadata.annotations
    ready.advance(minutes=1)
    ready.settle(2)
    assert "--unsaved-chunks=1" not in arguments(ready.active_job())


def test_a_person_gives_up_a_kept_state(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    ready.settle(2)
    ready.edit(annotated({keys.ACCEPT_STATE: offered(ready)}))
    ready.settle(2)
    assert kept_secrets(ready) == []
    assert len(backups(ready, 7)) == 1
    assert ready.reason("StateReadable") == "True/StateRead"


def test_a_word_that_was_taken_back_gives_no_kept_state_up(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    ready.settle(2)
    ready.edit(annotated({keys.ACCEPT_STATE: offered(ready)}))
    cache = Stale(ready)
    ready.edit(lambda obj: obj.metadata.annotations.pop(keys.ACCEPT_STATE))
    with pytest.raises(Conflict):
        ready.run(ready.env(cache=cache))
    assert kept_secrets(ready) != []


def test_a_person_says_that_nothing_of_a_lost_first_apply_exists(world: World, first: Job):
    leave(world, first, in_secrets=False)
    world.settle(2)
    assert world.reason("StateReadable") == "False/UnsavedStateLost"
    assert f"{keys.CONFIRM_NO_RESOURCES}={first.metadata.name}" in (
        world.condition("StateReadable").message
    )
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: first.metadata.name}))
    world.settle(2)
    world.advance(minutes=1)
    world.settle(2)
    assert world.active_job().metadata.labels[keys.OP] == "apply"


def test_retain_keeps_the_unsaved_state_as_well(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    ready.settle(2)
    ready.edit(lambda obj: setattr(obj.spec, "deletion_policy", DeletionPolicy.RETAIN))
    ready.delete()
    ready.settle(3)
    assert ready.gone
    (name,) = kept_secrets(ready)
    secret = ready.secret(name)
    assert secret is not None
    assert secret.metadata.owner_references == []
    assert keys.RETAINED_FROM_UID in secret.metadata.labels


# A restore in place of a kept state.


def ask_restore(world: World, serial: int) -> None:
    world.edit(annotated({keys.RESTORE_STATE: str(serial)}))


def backups(world: World, serial: int) -> list[BackupSet]:
    found = read_backups(world.door, world.owner)
    return [backup for backup in found if backup.complete and backup.serial == serial]


def test_a_restore_makes_a_backup_of_the_kept_state_that_it_replaces(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    ask_restore(ready, 1)
    ready.settle(2)
    job = ready.active_job()
    assert job.metadata.labels[keys.OP] == "restore"
    (backup,) = backups(ready, 7)
    assert (backup.replaced, backup.job, backup.resources) == (True, second.metadata.name, 2)

    ready.advance(seconds=5)
    ready.runner.succeed(job)
    ready.settle(3)
    assert kept_secrets(ready) == []
    assert ready.reason("StateReadable") == "True/StateRead"
    (backup,) = backups(ready, 7)
    content = read_backup(ready.door, ready.owner, backup)
    assert isinstance(content, Content)
    assert json.loads(content.text) == LEFT
    (note,) = [n for n in ready.events.notes if n.reason == "UnsavedStateStored"]
    assert "kept as a backup" in note.note


def test_a_restore_that_cannot_copy_the_kept_state_does_not_start(ready: World, second: Job):
    leave(ready, second, in_secrets=True)
    ask_restore(ready, 1)
    quota = Forbidden("exceeded quota")
    with contextlib.suppress(Forbidden):
        for _ in range(2):
            ready.run(ready.env(door=failing(ready.door, quota, "create", SECRETS)))
    assert ready.running() == []
    assert len(kept_secrets(ready)) == 1


@pytest.mark.parametrize("damage", ["garbage", "without a serial"])
def test_a_kept_state_that_cannot_be_a_backup_is_copied_as_it_is(
    ready: World, second: Job, damage: str
):
    leave(ready, second, in_secrets=True)
    text = json.dumps(LEFT | {"serial": 0}).encode()
    data = b"garbage" if damage == "garbage" else kept.packed(text)
    patch = {"data": encode_data({wire.KEPT_KEY: data})}
    ready.door.patch(SECRETS, wire.kept_secret(ready.owner.suffix), NAMESPACE, patch)
    ask_restore(ready, 1)
    ready.settle(2)
    ready.advance(seconds=5)
    ready.runner.succeed(ready.active_job())
    ready.settle(2)
    assert kept_secrets(ready) == []
    (aside,) = [b for b in read_backups(ready.door, ready.owner) if not b.complete]
    copy = ready.secret(aside.name)
    assert copy is not None and copy.data[keys.TFSTATE] == data
    assert "set aside" in aside.defect


def test_a_kept_state_that_turns_up_while_a_restore_runs_is_copied_too(ready: World, second: Job):
    ready.runner.end(second, ok=False, result=None, pod=False)
    ask_restore(ready, 1)
    ready.settle(2)
    job = ready.active_job()
    place = kept.Place.of_arguments(arguments(second))
    assert place is not None
    (document,) = kept.documents(json.dumps(LEFT).encode(), place)
    ready.door.create(SECRETS.untyped(), document, NAMESPACE)
    ready.advance(seconds=5)
    ready.runner.succeed(job)
    ready.settle(3)
    assert kept_secrets(ready) == []
    assert len(backups(ready, 7)) == 1

"""Deleting a cluster: what waits, what is destroyed, what is kept
(deletion.md: Order of a deletion)."""

import pytest

from captfctl.cluster.errors import Conflict, Forbidden, Unavailable
from captfctl.controller import Result
from captfctl.model import keys, names
from captfctl.model.meta import ObjectMeta, PartialObject
from captfctl.model.resources import (
    CLUSTERS,
    JOBS,
    LEASES,
    PODS,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TERRAFORM_CLUSTER_IDENTITIES,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINE_POOLS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import DeletionPolicy
from tests.support.cluster_world import (
    NAME,
    NAMESPACE,
    World,
    annotated,
    terraform_cluster,
    variables,
)
from tests.support.doors import Overridden


def retain(obj):
    obj.spec.deletion_policy = DeletionPolicy.RETAIN


def destroyed(world: World) -> Result:
    """From a deleted object to a destroy that succeeded and was read."""
    world.run()
    world.runner.succeed(world.running()[0])
    return world.run()


def lose_state(world: World) -> None:
    name = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, name, NAMESPACE)


def add(world: World, resource, name: str) -> None:
    meta = ObjectMeta(name=name, namespace=NAMESPACE, labels={keys.CLUSTER_NAME: NAME})
    obj = PartialObject(api_version=resource.api_version, kind=resource.kind, metadata=meta)
    document = resource.untyped().decode(resource.metadata_only().encode(obj))
    document["spec"] = {"source": {"image": "registry.example.com/module:v1"}}
    world.door.create(resource.untyped(), document, NAMESPACE)


def test_an_object_that_never_applied_goes_in_one_pass(world: World):
    world.run()
    world.events.clear()
    world.writes.forget()
    world.delete()
    world.run()
    assert world.gone
    assert sorted(world.events.reasons) == ["DeletionStarted", "FinalizerRemoved"]
    assert "create secrets" not in world.writes.seen  # no credentials were prepared


def test_a_lost_state_holds_the_deletion_and_says_the_ways_out(ready: World):
    lose_state(ready)
    ready.delete()
    assert ready.run().requeue_after == 60
    assert ready.reason("StateReadable") == "False/StateLost"
    message = ready.condition("StateReadable").message
    assert f"{keys.RESTORE_STATE}=<serial>, newest first: 1; or put" in message
    assert f"put Secret {names.state_secret(ready.owner.suffix)} back" in message
    assert "Retain" in message
    assert ready.running() == []
    assert ("none", "DeletionHeld") in ready.metrics.decisions


def test_retain_releases_a_held_deletion(ready: World):
    lose_state(ready)
    ready.delete()
    ready.settle(2)
    uid = ready.obj.metadata.uid
    ready.edit(retain)
    ready.run()
    assert ready.gone
    for name in (names.attempt_record("TerraformCluster", NAME), "captf-applied-c-prod"):
        secret = ready.secret(name)
        assert secret is not None
        assert secret.metadata.labels[keys.RETAINED_FROM_UID] == uid
        assert secret.metadata.owner_references == []
        assert secret.metadata.finalizers == []
    assert ready.events.reasons[-1] == "InfrastructureRetained"
    assert "kept 0 state, 1 backup and 2 inputs Secrets" in ready.events.notes[-1].note


def test_retain_never_destroys_even_what_it_could(ready: World):
    owner = ready.owner
    ready.edit(retain)
    ready.delete()
    ready.run()
    assert ready.gone
    assert ready.job_ops() == ["apply"]
    assert ready.secret(names.state_secret(owner.suffix)) is not None
    assert ready.secret(names.plan_key("TerraformCluster", NAME)) is None


def test_a_destroy_that_succeeded_is_never_turned_into_a_retain(ready: World):
    ready.delete()
    ready.run()
    ready.runner.succeed(ready.running()[0])
    ready.edit(retain)
    ready.run()
    assert ready.gone
    assert "Destroyed" in ready.events.reasons


def test_machines_and_pools_block_whatever_the_policy(ready: World):
    for name in ("m-4", "m-1", "m-5", "m-2", "m-3"):
        add(ready, TERRAFORM_MACHINES, name)
    add(ready, TERRAFORM_MACHINE_POOLS, "pool")
    ready.edit(retain)
    ready.delete()
    assert ready.run().requeue_after == 30
    condition = ready.condition("DeletionBlocked")
    assert (condition.status, condition.reason) == ("True", "DependentsExist")
    assert "5 TerraformMachine (m-1, m-2, m-3 and 2 more)" in condition.message
    assert "1 TerraformMachinePool (pool)" in condition.message
    warned = [note.note for note in ready.events.notes if note.warning]
    assert any(note.startswith("DeletionBlocked: True/DependentsExist: ") for note in warned)
    assert ready.running() == []
    for item in ready.door.list(TERRAFORM_MACHINES, NAMESPACE).items:
        ready.door.delete(TERRAFORM_MACHINES, item.metadata.name, NAMESPACE)
    ready.door.delete(TERRAFORM_MACHINE_POOLS, "pool", NAMESPACE)
    ready.run()
    assert ready.gone


def test_a_destroy_retries_for_ever_with_backoff(ready: World):
    ready.delete()
    ready.run()
    ready.runner.fail(ready.running()[0], "destroy")
    assert ready.run().requeue_after == 60
    assert ready.reason("ApplyJobSucceeded") == "False/DestroyFailed"
    ready.advance(seconds=60)
    ready.run()
    assert ready.running()[0].metadata.labels[keys.ATTEMPT] == "2"


def test_a_deadline_counts_although_the_runner_calls_it_interrupted(ready: World):
    ready.delete()
    ready.run()
    error = {"kind": "interrupted", "step": "destroy", "tail": ""}
    ready.runner.end(
        ready.running()[0],
        ok=False,
        result={"op": "destroy", "error": error},
        reason="DeadlineExceeded",
    )
    assert ready.run().requeue_after == 60
    assert ready.reason("ApplyJobSucceeded") == "False/JobDeadlineExceeded"


def test_a_drain_is_retried_at_once(ready: World):
    ready.delete()
    ready.run()
    error = {"kind": "interrupted", "step": "destroy", "tail": ""}
    ready.runner.end(ready.running()[0], ok=False, result={"op": "destroy", "error": error})
    ready.run()
    assert ready.running()[0].metadata.labels[keys.OP] == "destroy"
    assert "JobInterrupted" in ready.events.warnings()


def test_a_failed_first_apply_that_may_have_applied_holds_the_live_object(world: World):
    world.settle(2)
    world.runner.fail(world.active_job(), "apply")
    world.settle(2)
    world.advance(minutes=2)
    world.settle(2)
    assert world.job_ops() == ["apply"] * len(world.jobs())


def fail_without_resources(world: World, step: str = "validate") -> None:
    """A first apply whose module is broken: `init` wrote an empty state before it failed."""
    world.settle(2)
    job = world.active_job()
    world.runner.write_state(job, {}, resources=0)
    world.runner.fail(job, step)
    world.settle(2)


@pytest.mark.parametrize("step", ["init", "validate", "plan", "apply"])
def test_a_first_apply_that_created_nothing_needs_no_destroy(world: World, step: str):
    fail_without_resources(world, step)
    world.delete()
    world.run()

    assert world.gone
    assert world.secrets() == []
    assert world.leases() == []
    assert world.metrics.decisions[-1] == ("finalizer", "DeletingWithoutResources")
    assert "its state has no resources" in world.events.notes[-1].note


def test_credentials_that_are_gone_do_not_hold_what_created_nothing(world: World):
    fail_without_resources(world)
    world.door.delete(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    world.delete()
    world.run()
    assert world.gone


def test_a_broken_destroy_ends_once_the_state_has_no_resources(ready: World):
    ready.delete()
    ready.run()
    job = ready.active_job()
    ready.runner.write_state(job, {}, resources=0)
    ready.runner.fail(job, "destroy")
    ready.run()
    assert ready.gone


def test_a_paused_object_that_created_nothing_stays_until_it_is_resumed(world: World):
    fail_without_resources(world)
    world.edit(annotated({"cluster.x-k8s.io/paused": ""}))
    world.delete()
    world.settle(3)
    assert not world.gone
    world.edit(annotated({"cluster.x-k8s.io/paused": None}))
    world.settle(2)
    assert world.gone


def test_an_empty_state_is_kept_where_the_policy_says_so(world: World):
    fail_without_resources(world)
    state = names.state_secret(world.owner.suffix)
    world.edit(retain)
    world.delete()
    world.run()
    assert world.gone
    assert world.secret(state) is not None


def test_a_state_that_cannot_be_read_is_not_taken_for_one_without_resources(world: World):
    fail_without_resources(world)
    state = names.state_secret(world.owner.suffix)
    world.door.patch(SECRETS, state, NAMESPACE, {"data": {"tfstate": "bm90IGd6aXA="}})
    world.delete()
    world.settle(2)
    assert not world.gone
    assert world.reason("StateReadable") == "False/StateCorrupt"


def test_an_unconfirmed_apply_is_destroyed_although_the_state_has_no_resources(world: World):
    world.settle(2)
    job = world.active_job()
    world.runner.write_state(job, {}, resources=0)
    world.door.delete(JOBS, job.metadata.name, NAMESPACE)
    world.delete()
    world.settle(2)
    world.advance(seconds=61)  # by then the run lease of the Job that vanished is free
    world.run()
    assert world.active_job().metadata.labels[keys.OP] == "destroy"


def test_a_person_at_work_on_an_empty_state_is_waited_for(world: World):
    fail_without_resources(world)
    world.runner.lock(world.jobs()[0], who="ann@laptop")
    world.delete()
    world.settle(2)
    assert not world.gone
    assert world.active_job().metadata.labels[keys.OP] == "destroy"


def test_an_apply_that_vanished_without_state_holds_until_somebody_vouches(world: World):
    world.settle(2)
    job = world.lose_job()
    world.delete()
    world.settle(2)
    assert world.reason("StateReadable") == "False/ApplyOutcomeUnknown"
    assert job.metadata.name in world.condition("StateReadable").message
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: "another-job"}))
    world.run()
    assert not world.gone
    assert keys.CONFIRM_NO_RESOURCES in world.obj.metadata.annotations
    world.advance(seconds=61)  # by then the run lease of a Job that nobody has seen is free
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: f" {job.metadata.name} "}))
    world.run()
    assert world.gone


def test_a_live_object_applies_again_once_somebody_vouches(world: World):
    world.settle(2)
    job = world.lose_job()
    assert world.settle(2).requeue_after == 60
    assert world.reason("StateReadable") == "False/ApplyOutcomeUnknown"
    assert world.jobs() == []
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: job.metadata.name}))
    world.run()
    assert keys.CONFIRM_NO_RESOURCES not in world.obj.metadata.annotations
    assert world.job_ops() == ["apply"]


def test_a_conflict_while_the_confirmation_is_used_up_decides_again_soon(world: World):
    world.settle(2)
    job = world.lose_job()
    world.settle(2)
    world.edit(annotated({keys.CONFIRM_NO_RESOURCES: job.metadata.name}))

    def stale(*_, **__):
        raise Conflict("changed meanwhile")

    door = Overridden(world.writes, patch={"terraformclusters": stale})
    assert world.run(world.env(door)).requeue_after == 5
    assert world.jobs() == []
    world.run()
    assert world.job_ops() == ["apply"]


def test_the_attempt_that_may_have_applied_is_what_is_destroyed(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    ready.runner.fail(ready.active_job(), "apply")
    ready.settle(2)
    ready.delete()
    ready.run()
    destroy = ready.running()[0]
    files = ready.secret(names.run_secret(destroy.metadata.name)).data
    assert b"eu-2" in files["terraform.tfvars.json"]
    assert "DestroyInputsMismatch" in ready.events.warnings()


def test_a_blocked_attempt_is_not_what_is_destroyed(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    ready.runner.fail(ready.active_job(), "plan", kind="blocked")
    ready.settle(2)
    ready.delete()
    ready.run()
    destroy = ready.running()[0]
    files = ready.secret(names.run_secret(destroy.metadata.name)).data
    assert b"eu-1" in files["terraform.tfvars.json"]
    assert "DestroyInputsMismatch" not in ready.events.warnings()


def drop_records(world: World) -> None:
    for name in ("captf-inputs-c-prod", "captf-applied-c-prod"):
        world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
        world.door.delete(SECRETS, name, NAMESPACE)


def test_without_records_the_current_inputs_are_destroyed(ready: World):
    drop_records(ready)
    ready.delete()
    ready.run()
    assert ready.running()[0].metadata.labels[keys.OP] == "destroy"


def test_with_nothing_to_render_the_destroy_fails_without_a_job(ready: World):
    drop_records(ready)
    ready.edit(lambda obj: obj.metadata.owner_references.clear())
    ready.delete()
    assert ready.run().requeue_after == 600
    assert ready.reason("ApplyJobSucceeded") == "False/DestroyFailed"
    assert "Retain" in ready.condition("ApplyJobSucceeded").message
    assert ready.running() == []
    ready.settle(2)
    assert ready.events.warnings().count("JobFailed") == 1


def test_a_destroy_without_granted_credentials_waits_and_offers_retain(ready: World):
    found = ready.door.get(TERRAFORM_CLUSTER_IDENTITIES, "cloud")
    found.spec.allowed_namespaces.selector = None
    found.spec.allowed_namespaces.names = ["elsewhere"]
    ready.door.update(TERRAFORM_CLUSTER_IDENTITIES, found)
    ready.delete()
    assert ready.run().requeue_after == 30
    assert ready.reason("ApplyJobSucceeded") == "False/IdentityNotAllowed"
    assert "Retain" in ready.condition("ApplyJobSucceeded").message
    assert ready.secret("captf-creds-cloud") is None


def test_the_deletion_says_which_right_is_missing(ready: World):
    ready.door.delete(SERVICE_ACCOUNTS, "captf-runner", NAMESPACE)
    ready.delete()

    def refused(*_, **__):
        raise Forbidden("exceeded quota")

    door = Overridden(ready.writes, create={"serviceaccounts": refused})
    assert ready.run(ready.env(door)).requeue_after == 30
    assert "RunnerRBACReady" in ready.condition("Deleting").message
    assert ready.running() == []


def test_a_refused_job_gives_the_leases_back_and_fails_the_pass(ready: World):
    ready.delete()

    def refused(*_, **__):
        raise Forbidden("exceeded quota")

    with pytest.raises(Forbidden):
        ready.run(ready.env(Overridden(ready.writes, create={"jobs": refused})))
    assert ready.leases() == []
    assert not ready.gone


def test_nothing_is_cleaned_up_while_a_run_lease_is_live(ready: World):
    ready.delete()
    ready.run()
    job = ready.running()[0]
    ready.runner.succeed(job)
    lease = ready.door.get(LEASES, names.run_lease(ready.owner.suffix), NAMESPACE)
    state = names.state_secret(ready.owner.suffix)

    def keep(resource, name, namespace="", **_):
        return None

    pod = ready.pods()[-1]
    pod.metadata.finalizers = []  # of a Job that an earlier release started
    pod = ready.door.update(PODS, pod)
    pod.status.phase = "Running"
    ready.door.update(PODS, pod, subresource="status")
    result = ready.run(ready.env(Overridden(ready.writes, delete={"leases": keep})))
    assert lease.spec.holder_identity == job.metadata.name
    assert result.requeue_after == 5
    assert ready.secret(state) is not None
    assert not ready.gone


def test_a_cleanup_that_cannot_finish_keeps_the_finalizer_and_goes_on_later(ready: World):
    ready.delete()
    ready.run()
    ready.runner.succeed(ready.running()[0])

    def broken(resource, name, namespace="", **options):
        if name.startswith("captf-inputs"):
            raise Unavailable("not now")
        return ready.door.delete(resource, name, namespace, **options)

    with pytest.raises(Unavailable):
        ready.run(ready.env(Overridden(ready.writes, delete={"secrets": broken})))
    assert not ready.gone
    ready.run()
    assert ready.gone
    assert ready.secrets() == []
    assert ready.events.reasons.count("Destroyed") == 1


def test_a_mirror_that_changes_during_the_cleanup_is_looked_at_again_soon(ready: World):
    ready.delete()
    ready.run()
    ready.runner.succeed(ready.running()[0])

    def changed(resource, name, namespace="", **options):
        if name == "captf-creds-cloud":
            raise Conflict("another user came")
        return ready.door.delete(resource, name, namespace, **options)

    door = Overridden(ready.writes, delete={"secrets": changed})
    assert ready.run(ready.env(door)).requeue_after == 5
    assert not ready.gone
    ready.run()
    assert ready.gone


def retained_by_an_earlier_object(world: World) -> str:
    """Delete with Retain and create the object again; the earlier UID."""
    uid = world.obj.metadata.uid
    world.edit(retain)
    world.delete()
    world.run()
    assert world.gone
    owner = world.door.get(CLUSTERS, NAME, NAMESPACE)
    world.create(TERRAFORM_CLUSTERS, terraform_cluster(owner))
    world.events.clear()
    world.metrics.decisions.clear()
    return uid


def test_what_an_earlier_object_kept_is_not_touched(ready: World):
    uid = retained_by_an_earlier_object(ready)
    state = names.state_secret(ready.owner.suffix)
    before = ready.secret(state)
    assert ready.settle().requeue_after == 60
    assert ready.reason("StateReadable") == "False/RetainedStateFound"
    assert uid in ready.condition("StateReadable").message
    assert ready.events.warnings().count("RetainedStateFound") == 1
    assert ready.running() == []
    assert ready.secret(state) == before
    ready.delete()
    ready.run()
    assert ready.gone
    assert ready.secret(state) == before


def test_what_an_earlier_object_kept_is_adopted_when_asked(ready: World):
    retained_by_an_earlier_object(ready)
    ready.edit(lambda obj: setattr(obj.spec, "adopt_retained_state", True))
    ready.run()
    assert ready.run().requeue_after == 5
    assert "RetainedStateAdopted" in ready.events.reasons
    ready.settle()
    assert ready.obj.status.initialization.provisioned
    assert ready.running() == []
    state = ready.secret(names.state_secret(ready.owner.suffix))
    assert [ref.uid for ref in state.metadata.owner_references] == [ready.obj.metadata.uid]


def test_a_retain_that_was_called_off_leaves_no_label(ready: World):
    name = names.state_secret(ready.owner.suffix)
    label = {"metadata": {"labels": {keys.RETAINED_FROM_UID: ready.obj.metadata.uid}}}
    ready.door.patch(SECRETS, name, NAMESPACE, label)
    ready.delete()
    ready.run()
    assert keys.RETAINED_FROM_UID not in ready.secret(name).metadata.labels
    assert ready.running()[0].metadata.labels[keys.OP] == "destroy"


def test_the_last_object_of_a_namespace_takes_the_runners_rights_along(ready: World):
    ready.delete()
    destroyed(ready)
    assert ready.door.list(SERVICE_ACCOUNTS, NAMESPACE).items == []
    assert ready.door.list(ROLE_BINDINGS, NAMESPACE).items == []

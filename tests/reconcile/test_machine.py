"""Passes of a `TerraformMachine` (reconcile.md: Machines)."""

import base64
import json

import pytest

from captfctl.cluster.errors import Conflict, Invalid
from captfctl.model import keys, names
from captfctl.model.capi import InfrastructureRef
from captfctl.model.conditions import find
from captfctl.model.resources import (
    CLUSTERS,
    MACHINES,
    SECRETS,
    TERRAFORM_CLUSTERS,
    TERRAFORM_MACHINES,
)
from captfctl.model.terraform import (
    ClusterDefaults,
    DeletionPolicy,
    IdentityRef,
    Remediation,
)
from captfctl.reconcile.cache import DoorCache
from runner import kept
from tests.reconcile.test_restore import lose_state, restore
from tests.support.cluster_world import KEY, NAME, NAMESPACE
from tests.support.machine_world import (
    MACHINE_NAME,
    MACHINE_OUTPUTS,
    MachineWorld,
    bootstrap_secret,
    machine_outputs,
)


@pytest.fixture
def world() -> MachineWorld:
    return MachineWorld().populate()


@pytest.fixture
def ready(world: MachineWorld) -> MachineWorld:
    world.apply()
    world.events.clear()
    world.writes.forget()
    return world


def rendered(world: MachineWorld) -> dict[str, object]:
    record = world.secret(names.attempt_record(world.kind.name, MACHINE_NAME))
    assert record is not None
    return json.loads(record.data["terraform.tfvars.json"])


def patch_machine_object(world: MachineWorld, **spec: object) -> None:
    world.door.patch(TERRAFORM_MACHINES, MACHINE_NAME, NAMESPACE, {"spec": spec})


# From nothing to Ready.


def test_a_machine_is_applied_with_its_bootstrap_data_and_the_exports_of_its_cluster(
    world: MachineWorld,
):
    world.settle(2)
    job = world.active_job()
    assert job.metadata.labels[keys.OP] == "apply"
    assert job.metadata.name.startswith("captf-m-")
    given = rendered(world)
    assert given["captf_cluster_outputs"] == {"network_id": "net-1"}
    assert given["machine_name"] == MACHINE_NAME
    assert base64.b64decode(str(given["bootstrap_data"])) == b"#cloud-config"
    assert given["bootstrap_format"] == "cloud-config"
    assert (given["failure_domain"], given["control_plane"]) == (None, False)
    assert given["kubernetes_version"] == "v1.34.0"


def test_the_outputs_become_provider_id_addresses_and_placement(world: MachineWorld):
    world.apply()
    obj = world.obj
    assert obj.spec.provider_id == "cloud:///zone-a/i-1"
    assert [(a.type, a.address) for a in obj.status.addresses] == [("InternalIP", "10.0.0.7")]
    assert (obj.status.failure_domain, obj.status.interruptible) == ("zone-a", False)
    assert world.reason("Ready") == "True/Ready"
    assert world.reason("InputsApplied") == "True/InputsApplied"
    assert "ProviderIDSet" in world.events.reasons
    assert world.running() == []


def test_an_apply_with_a_definite_reading_stands_in_for_the_refresh_after_it(world: MachineWorld):
    world.apply()
    newest = max(job.status.completion_time for job in world.jobs() if job.status.completion_time)
    assert world.obj.status.last_refresh == newest
    assert world.job_ops() == ["apply", "apply"]  # the cluster's and the machine's


def test_an_apply_that_leaves_the_machine_pending_is_followed_by_refreshes(world: MachineWorld):
    world.apply(machine_outputs("pending", False))
    assert [job.metadata.labels[keys.OP] for job in world.running()] == ["refresh"]
    assert world.obj.status.initialization is None


# Gates.


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda w: w.door.delete(MACHINES, MACHINE_NAME, NAMESPACE), "False/OwnerNotFound"),
        (
            lambda w: w.edit_machine(lambda m: setattr(m.spec, "infrastructure_ref", None)),
            "False/OwnerMismatch",
        ),
        (
            lambda w: w.edit_machine(lambda m: setattr(m.spec, "cluster_name", "other")),
            "False/OwnerMismatch",
        ),
        (
            lambda w: w.edit_cluster(
                lambda c: setattr(
                    c.spec,
                    "infrastructure_ref",
                    InfrastructureRef(api_group="example.com", kind="Other", name=NAME),
                )
            ),
            "False/ClusterNotTerraform",
        ),
        (lambda w: w.door.delete(CLUSTERS, NAME, NAMESPACE), "Unknown/WaitingForOwner"),
        (
            lambda w: w.door.patch(
                CLUSTERS,
                NAME,
                NAMESPACE,
                {"status": {"initialization": None}},
                subresource="status",
            ),
            "Unknown/WaitingForClusterInfrastructure",
        ),
        (
            lambda w: w.door.delete(SECRETS, f"{MACHINE_NAME}-bootstrap", NAMESPACE),
            "Unknown/WaitingForBootstrapData",
        ),
        (
            lambda w: w.edit_machine(lambda m: setattr(m.spec, "bootstrap", None)),
            "Unknown/WaitingForBootstrapData",
        ),
    ],
)
def test_what_a_machine_waits_for_is_said_and_no_job_starts(world: MachineWorld, spoil, expected):
    spoil(world)
    world.settle(3)
    assert world.reason("DependenciesReady") == expected
    assert world.reason("Ready").startswith(("False/NotReady", "Unknown/ReadyUnknown"))
    assert world.running() == []


def test_a_control_plane_that_owns_the_machine_first_is_waited_for(world: MachineWorld):
    obj = world.obj
    obj.metadata.owner_references[0].kind = "KubeadmControlPlane"
    obj.metadata.owner_references[0].api_version = "controlplane.cluster.x-k8s.io/v1beta2"
    world.door.update(TERRAFORM_MACHINES, obj)
    assert world.run().requeue_after == 30
    assert world.reason("DependenciesReady") == "False/WaitingForOwnerMachine"


def test_a_lost_state_of_the_cluster_is_waited_for(world: MachineWorld):
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    name = names.state_secret(cluster.status.state_secret_suffix)
    world.door.patch(SECRETS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    world.door.delete(SECRETS, name, NAMESPACE)
    world.settle(2)
    assert world.reason("DependenciesReady") == "Unknown/WaitingForClusterExports"


def test_a_cluster_that_is_managed_from_elsewhere_exports_nothing(world: MachineWorld):
    change = {"metadata": {"annotations": {keys.MANAGED_BY: "other"}}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
    world.settle(2)
    assert rendered(world)["captf_cluster_outputs"] == {}


# A machine is never changed in place.


def test_what_changes_after_provisioning_does_not_matter(ready: MachineWorld):
    ready.edit_machine(lambda m: setattr(m.spec, "version", "v1.35.0"))
    ready.door.delete(SECRETS, f"{MACHINE_NAME}-bootstrap", NAMESPACE)
    ready.create(SECRETS, bootstrap_secret(value=b"rotated"))
    ready.settle(3)
    assert ready.running() == []
    assert ready.reason("InputsApplied") == "True/InputsApplied"
    assert ready.reason("DependenciesReady") == "True/DependenciesReady"


def test_an_apply_that_failed_half_way_is_tried_again_and_its_provider_id_is_not_kept(
    world: MachineWorld,
):
    world.settle(2)
    world.runner.write_state(world.active_job(), MACHINE_OUTPUTS)
    world.runner.fail(world.active_job())
    world.settle(2)
    assert world.obj.spec.provider_id == ""
    world.advance(seconds=60)
    world.run()
    job = world.active_job()
    assert job.metadata.labels[keys.ATTEMPT] == "2"
    assert ("apply", "StateWithoutInputsHash") in world.metrics.decisions


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"image": "registry.example.com/machine-module:v2"}},
        {"identityRef": {"name": "other"}},
        {"providerID": "cloud:///zone-b/i-2"},
        {"variablesFrom": [{"configMapRef": {"name": "more"}}]},
    ],
)
def test_the_immutable_fields_cannot_be_changed(ready: MachineWorld, change):
    with pytest.raises(Invalid) as refused:
        patch_machine_object(ready, **change)
    assert f"spec.{next(iter(change))}" in str(refused.value)


def test_another_provider_id_is_reported_and_never_written(ready: MachineWorld):
    ready.advance(minutes=40)
    ready.settle(1)
    ready.runner.succeed(
        ready.active_job(), machine_outputs(provider_id="cloud:///zone-a/i-2"), drift=None
    )
    ready.settle(1)
    assert ready.obj.spec.provider_id == "cloud:///zone-a/i-1"
    assert ready.reason("OutputsValid") == "False/ProviderIDChanged"
    assert "never changes" in ready.condition("OutputsValid").message


@pytest.mark.parametrize("domain", ["zone-b", None])
def test_a_machine_in_another_failure_domain_than_asked_for_is_not_ready(domain):
    world = MachineWorld().populate()
    world.edit_machine(lambda m: setattr(m.spec, "failure_domain", "zone-a"))
    world.apply(machine_outputs(failure_domain=domain))
    assert world.reason("OutputsValid") == "False/FailureDomainMismatch"
    assert world.obj.status.initialization is None
    assert world.obj.status.failure_domain == ""  # the old value is kept


# What a machine inherits.


def test_identity_and_job_policy_come_from_the_cluster(world: MachineWorld):
    world.settle(2)
    job = world.active_job()
    assert world.reason("IdentityAllowed") == "True/IdentityAllowed"
    assert job.spec.template.spec.service_account_name == "captf-runner"


def test_a_machine_is_destroyed_with_the_identity_that_made_it(ready: MachineWorld):
    def another(cluster) -> None:
        cluster.spec.defaults = ClusterDefaults(identity_ref=IdentityRef(name="missing"))

    cluster = ready.door.get(TERRAFORM_CLUSTERS, *reversed(KEY))
    another(cluster)
    ready.door.update(TERRAFORM_CLUSTERS, cluster)
    ready.delete()
    ready.settle(2)
    assert ready.reason("IdentityAllowed") == "True/IdentityAllowed"
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["destroy"]


# Health.


def unhealthy_machine(threshold: int = 3) -> MachineWorld:
    world = MachineWorld().populate()
    spec = {"remediation": {"annotateMachine": True, "unhealthyThreshold": threshold}}
    world.door.patch(TERRAFORM_MACHINES, MACHINE_NAME, NAMESPACE, {"spec": spec})
    world.apply()
    world.events.clear()
    return world


def read_again(world: MachineWorld, outputs) -> None:
    world.advance(minutes=6)
    world.refresh(outputs)


def test_three_unhealthy_samples_ask_for_another_machine_and_health_takes_it_back():
    world = unhealthy_machine()
    bad = machine_outputs("running", False)
    for count in (1, 2):
        read_again(world, bad)
        assert world.obj.status.unhealthy_samples == count
        assert keys.REMEDIATE not in world.machine.metadata.annotations
    read_again(world, bad)
    marks = world.machine.metadata.annotations
    assert marks[keys.REMEDIATE] == ""
    assert marks[keys.REMEDIATION_REQUESTED] == "InstanceUnhealthy for 3 consecutive samples"
    assert "RemediationRequested" in world.events.warnings()
    read_again(world, MACHINE_OUTPUTS)
    assert keys.REMEDIATE not in world.machine.metadata.annotations
    assert "RemediationWithdrawn" in world.events.reasons


def test_a_mark_of_somebody_else_is_left_alone():
    world = unhealthy_machine(threshold=1)
    world.edit_machine(lambda m: m.metadata.annotations.update({keys.REMEDIATE: ""}))
    read_again(world, machine_outputs("stopped", False))
    read_again(world, MACHINE_OUTPUTS)
    assert world.machine.metadata.annotations == {keys.REMEDIATE: ""}


def test_without_remediation_nothing_is_asked_for(ready: MachineWorld):
    ready.advance(minutes=40)
    ready.refresh(machine_outputs("terminated", False))
    assert ready.reason("InfrastructureHealthy") == "False/InstanceTerminated"
    assert ready.machine.metadata.annotations == {}


def test_a_provider_id_that_is_gone_twice_means_a_terminated_machine():
    world = unhealthy_machine()
    read_again(world, machine_outputs(provider_id=None))
    assert world.reason("InfrastructureHealthy") == "Unknown/ProviderIDMissing"
    world.settle(3)  # the same reading is no second sample
    assert world.reason("InfrastructureHealthy") == "Unknown/ProviderIDMissing"
    assert world.obj.spec.provider_id == "cloud:///zone-a/i-1"
    read_again(world, machine_outputs(provider_id=None))
    assert world.reason("InfrastructureHealthy") == "False/InstanceTerminated"
    assert keys.REMEDIATE in world.machine.metadata.annotations


def test_the_machine_changes_while_it_is_marked_and_the_mark_is_decided_again():
    world = unhealthy_machine(threshold=1)
    late, stale = DoorCache(world.door), world.machine
    late.machine = lambda _namespace, _name: stale  # type: ignore[method-assign]
    world.edit_machine(lambda m: m.metadata.annotations.update({"note": "changed"}))
    world.advance(minutes=6)
    world.settle(1)
    world.runner.succeed(world.active_job(), machine_outputs("stopped", False))
    with pytest.raises(Conflict):
        world.run(world.env(cache=late))
    world.settle(1)
    assert keys.REMEDIATE in world.machine.metadata.annotations
    assert world.obj.status.unhealthy_samples == 1


# Deletion.


def test_a_machine_is_destroyed_from_what_was_applied_after_its_owner_is_gone(ready: MachineWorld):
    ready.door.delete(MACHINES, MACHINE_NAME, NAMESPACE)
    ready.door.delete(SECRETS, f"{MACHINE_NAME}-bootstrap", NAMESPACE)
    ready.delete()
    ready.settle(2)
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["destroy"]
    ready.runner.succeed(ready.active_job())
    ready.settle(1)
    assert ready.gone


def without_its_cluster(world: MachineWorld) -> None:
    """The TerraformCluster that it would inherit from cannot be found any more."""
    world.door.delete(CLUSTERS, NAME, NAMESPACE)
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    cluster.metadata.labels[keys.CLUSTER_NAME] = "other"
    world.door.update(TERRAFORM_CLUSTERS, cluster)


def test_a_machine_of_which_only_a_kept_state_tells_is_not_guessed_about_either(
    world: MachineWorld,
):
    """Its first run could not store its state: a destroy would store it first."""
    world.settle(2)
    job = world.active_job()
    place = kept.Place.of_arguments(job.spec.template.spec.containers[0].args)
    assert place is not None
    for document in kept.documents(b'{"version": 4, "serial": 2, "lineage": "a"}', place):
        world.door.create(SECRETS.untyped(), document, NAMESPACE)
    world.runner.end(job, ok=False, result=None)
    without_its_cluster(world)
    world.delete()
    world.settle(2)
    assert world.reason("Deleting") == "True/DeletionPolicyUnresolved"
    assert world.running() == []


def test_a_machine_without_a_policy_of_its_own_is_not_guessed_about(ready: MachineWorld):
    without_its_cluster(ready)
    ready.delete()
    assert ready.run().requeue_after == 30
    assert ready.reason("Deleting") == "True/DeletionPolicyUnresolved"
    assert ready.running() == []
    patch_machine_object(ready, deletionPolicy="Destroy")
    ready.settle(1)
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["destroy"]


def test_a_lost_state_is_restored_also_where_no_policy_is_found(ready: MachineWorld):
    without_its_cluster(ready)
    lose_state(ready)
    ready.delete()
    ready.settle(2)
    restore(ready, 1)
    ready.settle(2)
    assert ready.reason("RestoreJobSucceeded") == "True/StateRestored"
    assert ready.reason("Deleting") == "True/DeletionPolicyUnresolved"
    assert ready.running() == []


def test_a_machine_that_was_never_applied_needs_no_policy_to_go(world: MachineWorld):
    world.run()
    world.door.delete(CLUSTERS, NAME, NAMESPACE)
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    cluster.metadata.labels[keys.CLUSTER_NAME] = "other"
    world.door.update(TERRAFORM_CLUSTERS, cluster)
    world.delete()
    world.settle(1)
    assert world.gone


def test_the_only_labelled_cluster_gives_what_is_inherited_when_the_cluster_is_gone(
    ready: MachineWorld,
):
    ready.door.delete(CLUSTERS, NAME, NAMESPACE)
    ready.delete()
    ready.settle(2)
    assert [job.metadata.labels[keys.OP] for job in ready.running()] == ["destroy"]


# The gate between a cluster and its machines.


def test_an_apply_of_the_cluster_and_one_of_its_machine_never_run_at_the_same_time(
    ready: MachineWorld,
):
    change = {"spec": {"variables": {"region": "eu-2"}}}
    ready.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
    ready.run_cluster()
    (job,) = ready.running()
    assert job.metadata.labels[keys.OWNER_KIND] == "TerraformCluster"
    ready.delete()
    ready.settle(2)
    assert ready.running() == [job]
    assert ready.reason("ApplyJobSucceeded") == "Unknown/WaitingForClusterOperation"
    ready.runner.succeed(job)
    ready.run_cluster()
    ready.settle(1)
    assert [j.metadata.labels[keys.OP] for j in ready.running()] == ["destroy"]


def test_a_cluster_waits_for_its_machines_to_end_what_they_do(world: MachineWorld):
    world.settle(2)
    job = world.active_job()
    change = {"spec": {"variables": {"region": "eu-2"}}}
    world.door.patch(TERRAFORM_CLUSTERS, NAME, NAMESPACE, change)
    world.run_cluster()
    assert world.running() == [job]
    cluster = world.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    waiting = find(cluster.status.conditions, "ApplyJobSucceeded")
    assert waiting is not None
    assert waiting.reason == "WaitingForMachineOperations"


def test_a_machine_blocks_the_deletion_of_its_cluster(ready: MachineWorld):
    ready.door.delete(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    ready.run_cluster()
    assert ready.running() == []
    cluster = ready.door.get(TERRAFORM_CLUSTERS, NAME, NAMESPACE)
    blocked = find(cluster.status.conditions, "DeletionBlocked")
    assert blocked is not None
    assert f"1 TerraformMachine ({MACHINE_NAME})" in blocked.message


# At rest.


def test_a_machine_with_nothing_to_do_is_at_rest_and_writes_nothing(ready: MachineWorld):
    ready.look_at_credentials()
    ready.settle(2)
    assert ready.obj.status.settled is not None
    ready.writes.forget()
    ready.settle(3)
    assert ready.writes.seen == []


def test_a_retained_machine_keeps_its_state(ready: MachineWorld):
    patch_machine_object(ready, deletionPolicy=DeletionPolicy.RETAIN.value)
    suffix = ready.owner.suffix
    ready.delete()
    ready.settle(2)
    assert ready.gone
    assert ready.secret(names.state_secret(suffix)) is not None


def test_settings_of_the_machine_itself_may_change(ready: MachineWorld):
    def change(obj) -> None:
        obj.spec.remediation = Remediation(annotate_machine=True)

    ready.edit(change)
    ready.settle(1)
    assert ready.reason("Ready") == "True/Ready"

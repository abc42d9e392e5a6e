"""From a fresh object to a destroyed one, in passes."""

from datetime import timedelta

from captfctl.model import keys
from captfctl.model.kinds import CLUSTER
from captfctl.model.resources import CLUSTERS, TERRAFORM_CLUSTERS
from captfctl.model.terraform import ClusterDrift, DriftAction, JobPolicy
from tests.support.clock import START
from tests.support.cluster_world import NAMESPACE, World, annotated, at, variables
from tests.support.fake_runner import OUTPUTS


def test_the_first_pass_adds_the_finalizer_and_decides_nothing(world: World):
    assert world.run().requeue_after == 0
    assert world.obj.metadata.finalizers == [CLUSTER.finalizer]
    assert world.writes.seen == ["patch terraformclusters"]
    assert world.jobs() == []


def test_the_second_pass_starts_the_first_apply(world: World):
    world.run()
    assert world.run().requeue_after == 60
    job = world.active_job()
    assert job.metadata.labels[keys.OP] == "apply"
    obj = world.obj
    assert obj.status.active_job.name == job.metadata.name
    assert obj.metadata.annotations[keys.BLOCK_MOVE] == "true"
    assert world.reason("InfrastructureHealthy") == "False/Provisioning"
    assert world.reason("InputsApplied") == "False/ApplyRunning"
    assert world.reason("Reconciling") == "True/InputsNotApplied"
    assert world.secret(f"captf-run-{job.metadata.name}") is not None
    assert "NoState" not in world.events.notes[-1].note
    assert "nothing has been applied yet" in world.events.notes[-1].note


def test_a_successful_apply_makes_the_object_ready(world: World):
    job = world.apply()
    obj = world.obj
    assert world.reason("Ready") == "True/Ready"
    assert world.reason("ApplyJobSucceeded") == "True/ApplySucceeded"
    assert world.reason("InputsApplied") == "True/InputsApplied"
    assert world.reason("Reconciling") == "False/Reconciled"
    assert obj.status.initialization.provisioned
    assert obj.spec.control_plane_endpoint.host == "api.example.com"
    assert obj.metadata.annotations[keys.ENDPOINT_SOURCE] == "module"
    assert bytes(obj.status.exports) == b'{"network_id":"net-1"}'
    assert [domain.name for domain in obj.status.failure_domains] == ["zone-a"]
    assert obj.status.last_run.job == job.metadata.name
    assert obj.status.active_job is None
    assert keys.BLOCK_MOVE not in obj.metadata.annotations
    assert world.leases() == []
    assert world.events.reasons.count("Provisioned") == 1


def test_an_unchanged_object_costs_no_write(ready: World):
    ready.settle(3)
    assert ready.writes.seen == []
    assert ready.events.reasons == []


def test_time_alone_changes_no_condition(ready: World):
    before = ready.obj
    ready.advance(minutes=5)
    ready.run()
    assert ready.writes.seen == []
    assert ready.obj == before


def test_a_changed_variable_is_applied_exactly_once(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    assert ready.job_ops() == ["apply", "apply"]
    assert ready.events.reasons.count("InputsChanged") == 1
    ready.runner.succeed(ready.active_job())
    ready.settle()
    assert ready.job_ops() == ["apply", "apply"]
    assert ready.reason("InputsApplied") == "True/InputsApplied"


def test_metadata_the_module_never_sees_applies_nothing(ready: World):
    ready.edit(annotated({"example.com/note": "hello"}))
    ready.settle()
    assert ready.job_ops() == ["apply"]


def test_the_endpoint_written_back_by_us_applies_nothing(ready: World):
    host = {"host": "api.example.com", "port": 6443}
    ready.door.patch(CLUSTERS, "prod", NAMESPACE, {"spec": {"controlPlaneEndpoint": host}})
    ready.settle()
    assert ready.job_ops() == ["apply"]


def test_a_failed_apply_is_retried_after_its_backoff_with_the_next_attempt(world: World):
    world.settle(2)
    world.runner.fail(world.active_job(), "validate")
    assert world.run().requeue_after == 60
    condition = world.condition("ApplyJobSucceeded")
    assert (condition.status, condition.reason) == ("False", "ApplyFailed")
    assert "step validate failed" in condition.message
    assert world.obj.status.last_run.error.step == "validate"
    assert world.reason("InputsApplied") == "False/InputsApplyFailed"
    assert world.reason("Reconciling") == "False/Reconciled"
    assert "JobFailed" in world.events.warnings()
    world.advance(seconds=59)
    assert world.run().requeue_after == 1
    world.advance(seconds=1)
    world.run()
    assert world.active_job().metadata.labels[keys.ATTEMPT] == "2"


def test_a_corrected_variable_is_applied_without_waiting_for_the_failure(ready: World):
    ready.edit(variables('{"region":"nowhere"}'))
    ready.settle()
    ready.runner.fail(ready.active_job(), "validate")
    ready.settle()
    assert ready.reason("ApplyJobSucceeded") == "False/ApplyFailed"
    assert ready.reason("Ready") == "True/Ready"
    ready.edit(variables('{"region":"eu-3"}'))
    ready.run()
    ready.runner.succeed(ready.active_job())
    ready.settle()
    assert ready.reason("InputsApplied") == "True/InputsApplied"


def test_event_and_decision_count_the_failures_of_the_same_inputs(ready: World):
    for region in ("nowhere", "elsewhere"):
        ready.edit(variables(f'{{"region":"{region}"}}'))
        for seconds in (60, 120, 600):
            ready.run()
            ready.runner.fail(ready.active_job(), "validate")
            assert ready.run().requeue_after == seconds
            due = ready.clock.now() + timedelta(seconds=seconds)
            note = next(n for n in reversed(ready.events.notes) if n.reason == "JobFailed").note
            assert f"same inputs not before {due:%Y-%m-%dT%XZ} ({seconds} s, " in note
            ready.advance(seconds=seconds)


def test_a_drift_check_runs_when_it_is_due(ready: World):
    result = ready.run()
    assert 30 * 60 <= result.requeue_after < 33 * 60
    ready.advance(seconds=result.requeue_after)
    assert ready.run().requeue_after == 60
    assert ready.job_ops() == ["apply", "drift"]
    assert ready.reason("Ready") == "True/Ready"
    ready.run()
    assert ready.reason("DriftJobSucceeded") == "Unknown/DriftJobRunning"
    ready.runner.succeed(ready.running()[0], drift={"detected": False})
    ready.settle()
    assert ready.reason("DriftJobSucceeded") == "True/DriftChecked"
    assert ready.reason("DriftDetected") == "False/NoDrift"
    assert ready.obj.status.last_drift_check is not None
    assert ready.running() == []


def test_drift_is_reported_and_with_remediate_corrected(ready: World):
    def remediate(obj):
        obj.spec.drift = ClusterDrift(action=DriftAction.REMEDIATE)

    ready.edit(remediate)
    ready.advance(hours=1)
    ready.run()
    drift = {"detected": True, "update": 1, "resources": ["aws_vpc.main"]}
    ready.runner.succeed(ready.active_job(), drift=drift)
    ready.advance(seconds=5)
    ready.run()
    assert ready.reason("DriftDetected") == "True/DriftPending"
    job = ready.active_job()
    assert job.metadata.labels[keys.OP] == "apply"
    assert job.metadata.annotations[keys.DRIFT_REMEDIATION] == "true"
    assert {"DriftDetected", "DriftRemediationStarted"} <= set(ready.events.reasons)
    ready.run()
    assert ready.reason("DriftDetected") == "True/DriftRemediating"
    ready.advance(seconds=5)
    ready.runner.succeed(job)
    ready.settle()
    assert ready.reason("DriftDetected") == "False/NoDrift"
    assert job.metadata.name in ready.condition("DriftDetected").message
    assert ready.events.reasons.count("DriftResolved") == 1
    assert ready.running() == []


def test_a_failed_remediation_keeps_the_summary_once(ready: World):
    def remediate(obj):
        obj.spec.drift = ClusterDrift(action=DriftAction.REMEDIATE)

    ready.edit(remediate)
    ready.advance(hours=1)
    ready.run()
    ready.runner.succeed(ready.active_job(), drift={"detected": True, "update": 1})
    ready.settle()
    ready.advance(seconds=5)
    ready.runner.fail(ready.active_job(), "apply")
    ready.settle()
    message = ready.condition("DriftDetected").message
    assert ready.reason("DriftDetected") == "True/DriftPending"
    assert message.count("; remediation Job ") == 1
    assert message.count("1 to update") == 1


def test_pending_health_is_read_again_sooner_and_sooner_less_often(world: World):
    starting = {**OUTPUTS, "health": {"state": "pending", "healthy": False}}
    world.settle(2)
    world.runner.succeed(world.active_job(), outputs=starting)
    world.settle()
    assert world.reason("InfrastructureHealthy") == "False/InstancePending"
    assert not world.obj.status.initialization
    assert world.active_job().metadata.labels[keys.OP] == "refresh"
    world.advance(seconds=5)
    world.runner.succeed(world.active_job(), outputs=starting)
    world.run()
    assert world.obj.status.pending_refreshes == 1
    world.advance(seconds=40)
    world.run()
    world.runner.succeed(world.active_job())
    world.settle()
    assert world.reason("Ready") == "True/Ready"
    assert world.obj.status.pending_refreshes == 0


def test_an_invalid_job_policy_starts_nothing_but_a_destroy(world: World):
    def impossible(obj):
        obj.spec.jobs = JobPolicy(active_deadline_seconds=300, lock_timeout_seconds=300)

    world.edit(impossible)
    world.run()
    assert world.run().requeue_after == 600
    assert world.reason("ApplyJobSucceeded") == "False/JobPolicyInvalid"
    assert world.events.warnings() == ["JobFailed"]
    assert world.jobs() == []


def test_a_destroy_starts_although_the_job_policy_is_invalid(ready: World):
    def impossible(obj):
        obj.spec.jobs = JobPolicy(active_deadline_seconds=300, lock_timeout_seconds=300)

    ready.edit(impossible)
    ready.delete()
    ready.run()
    job = ready.active_job()
    assert job.metadata.labels[keys.OP] == "destroy"
    ready.settle(2)
    ready.runner.succeed(job)
    ready.run()
    assert ready.gone


def test_a_blocked_apply_is_tried_again_after_ten_minutes(ready: World):
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    ready.runner.fail(ready.active_job(), "plan", kind="blocked")
    assert ready.run().requeue_after == 600
    assert ready.reason("ApplyJobSucceeded") == "False/DestructivePlanBlocked"
    assert "DestructivePlanBlocked" in ready.events.warnings()
    ready.advance(seconds=600)
    ready.run()
    assert ready.job_ops().count("apply") == 3


def test_deletion_destroys_and_leaves_nothing(ready: World):
    ready.delete()
    ready.run()
    assert ready.reason("Deleting") == "True/Deleting"
    assert ready.reason("Ready") == "False/NotReady"
    job = ready.active_job()
    assert job.metadata.labels[keys.OP] == "destroy"
    ready.settle(2)
    ready.runner.succeed(job)
    ready.run()
    assert ready.gone
    assert ready.secrets() == []
    assert ready.leases() == []
    reasons = ready.events.reasons
    assert reasons.count("DeletionStarted") == 1
    assert reasons[-2:] == ["Destroyed", "FinalizerRemoved"]
    assert ready.metrics.forgotten == ["prod"]


def test_conditions_keep_their_transition_time_while_the_status_stays(ready: World):
    ready.advance(minutes=1)
    ready.edit(variables('{"region":"eu-2"}'))
    ready.settle()
    ready.runner.succeed(ready.active_job())
    ready.settle()
    assert ready.condition("Ready").last_transition_time == START
    assert ready.condition("InputsApplied").last_transition_time == at(START, minutes=1)


def test_a_hand_edited_condition_is_overwritten(ready: World):
    obj = ready.obj
    for condition in obj.status.conditions:
        if condition.type == "Ready":
            condition.status, condition.reason = "False", "Because"
    ready.door.update(TERRAFORM_CLUSTERS, obj, subresource="status")
    ready.run()
    assert ready.reason("Ready") == "True/Ready"


def test_the_gauges_show_the_object(ready: World):
    ready.run()
    gauges = ready.metrics.gauges["prod"]
    assert (gauges.ready, gauges.healthy, gauges.drift_detected) == (1, 1, False)
    assert gauges.state_resources == 1
    assert gauges.last_success["apply"] == START + timedelta(0)

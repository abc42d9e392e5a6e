"""What applies to an object after everything it inherits (api.md: Effective configuration)."""

from datetime import timedelta

import msgspec
import pytest

from captfctl.model.core import EnvVar, LocalObjectReference, Resources
from captfctl.model.terraform import (
    ApplyPolicy,
    ClusterDefaults,
    ClusterDrift,
    DeletionPolicy,
    DriftAction,
    IdentityRef,
    JobPolicy,
    Remediation,
)
from captfctl.terraform.contract.effective import (
    Flags,
    OwnSettings,
    cluster_config,
    machine_config,
    merge_jobs,
    pool_config,
)
from tests.contract_module.objects import terraform_cluster

FLAGS = Flags(drift_interval=timedelta(minutes=20), max_active_jobs=7)
OFF = timedelta(0)


def seconds(count):
    return timedelta(seconds=count)


def with_defaults(**defaults):
    return terraform_cluster(defaults=ClusterDefaults(**defaults))


def test_a_cluster_that_sets_nothing_follows_the_flags_and_the_safe_defaults():
    config = cluster_config(terraform_cluster(), FLAGS)
    assert config.drift_interval == timedelta(minutes=20)
    assert config.drift_action is DriftAction.REPORT
    assert config.deletion_policy is DeletionPolicy.DESTROY
    assert config.max_active_jobs == 7
    assert not config.manual_apply
    assert config.jobs == JobPolicy()


def test_a_cluster_uses_its_own_settings_and_not_its_defaults():
    obj = terraform_cluster(
        drift=ClusterDrift(interval_seconds=60, action=DriftAction.REMEDIATE),
        apply_policy=ApplyPolicy.MANUAL,
        max_active_jobs=3,
        deletion_policy=DeletionPolicy.RETAIN,
        defaults=ClusterDefaults(
            jobs=JobPolicy(active_deadline_seconds=1000),
            drift=ClusterDrift(interval_seconds=5),
            deletion_policy=DeletionPolicy.DESTROY,
        ),
    )
    config = cluster_config(obj, FLAGS)
    assert config.drift_interval == seconds(60)
    assert config.drift_action is DriftAction.REMEDIATE
    assert config.manual_apply
    assert config.max_active_jobs == 3
    assert config.deletion_policy is DeletionPolicy.RETAIN
    assert config.jobs.active_deadline_seconds == 0


@pytest.mark.parametrize("interval", [0, None])
def test_a_cluster_may_switch_drift_checks_off(interval):
    obj = terraform_cluster(drift=ClusterDrift(interval_seconds=interval))
    expected = OFF if interval == 0 else FLAGS.drift_interval
    assert cluster_config(obj, FLAGS).drift_interval == expected


def test_an_interval_beyond_the_calendar_is_cut():
    obj = terraform_cluster(drift=ClusterDrift(interval_seconds=2**62))
    assert cluster_config(obj, FLAGS).drift_interval == seconds(2**31 - 1)


@pytest.mark.parametrize(
    ("own", "default", "cluster", "expected"),
    [
        (10, 20, 30, seconds(10)),
        (None, 20, 30, seconds(20)),
        (None, None, 30, seconds(30)),
        (None, None, None, FLAGS.drift_interval),
        (0, 20, 30, OFF),
        (None, 0, 30, OFF),
    ],
)
def test_the_drift_interval_of_a_machine(own, default, cluster, expected):
    obj = terraform_cluster(
        drift=ClusterDrift(interval_seconds=cluster, action=DriftAction.REMEDIATE),
        defaults=ClusterDefaults(drift=ClusterDrift(interval_seconds=default)),
    )
    config = machine_config(OwnSettings(drift_interval=own), obj, FLAGS)
    assert config.drift_interval == expected
    assert config.drift_action is DriftAction.REPORT


@pytest.mark.parametrize(
    ("own", "default", "cluster", "expected"),
    [
        (10, 20, 30, seconds(10)),
        (None, 20, 30, seconds(20)),
        (None, 0, 30, seconds(30)),
        (0, 0, 0, FLAGS.drift_interval),
    ],
)
def test_the_drift_checks_of_a_pool_cannot_be_switched_off(own, default, cluster, expected):
    obj = terraform_cluster(
        drift=ClusterDrift(interval_seconds=cluster),
        defaults=ClusterDefaults(drift=ClusterDrift(interval_seconds=default)),
    )
    assert pool_config(OwnSettings(drift_interval=own), obj, FLAGS).drift_interval == expected
    flag_off = Flags(drift_interval=OFF)
    assert pool_config(OwnSettings(), terraform_cluster(), flag_off).drift_interval == timedelta(
        minutes=30
    )


def test_the_drift_action_of_a_pool():
    report, remediate = (ClusterDrift(action=action) for action in DriftAction)
    inherited = terraform_cluster(drift=remediate)
    assert pool_config(OwnSettings(), inherited, FLAGS).drift_action is DriftAction.REMEDIATE
    nearer = terraform_cluster(drift=remediate, defaults=ClusterDefaults(drift=report))
    assert pool_config(OwnSettings(), nearer, FLAGS).drift_action is DriftAction.REPORT
    own = OwnSettings(drift_action=DriftAction.REMEDIATE)
    assert pool_config(own, nearer, FLAGS).drift_action is DriftAction.REMEDIATE


def test_the_identity_comes_from_the_object_the_defaults_or_the_cluster():
    own, default = IdentityRef(name="own"), IdentityRef(name="default")
    both = with_defaults(identity_ref=default)
    for config in (machine_config, pool_config):
        assert config(OwnSettings(identity=own), both, FLAGS).identity == own
        assert config(OwnSettings(), both, FLAGS).identity == default
        inherited = config(OwnSettings(), terraform_cluster(), FLAGS).identity
        assert inherited is not None
        assert inherited.name == "cloud"
        assert config(OwnSettings(), None, FLAGS).identity is None


@pytest.mark.parametrize(
    ("own", "default", "cluster", "expected"),
    [
        ("Retain", "Destroy", "Destroy", "Retain"),
        (None, "Retain", "Destroy", "Retain"),
        (None, None, "Retain", "Retain"),
        (None, None, None, "Destroy"),
    ],
)
def test_the_deletion_policy_of_a_worker(own, default, cluster, expected):
    def policy(text):
        return DeletionPolicy(text) if text else None

    obj = terraform_cluster(
        deletion_policy=policy(cluster),
        defaults=ClusterDefaults(deletion_policy=policy(default)),
    )
    settings = OwnSettings(deletion_policy=policy(own))
    assert machine_config(settings, obj, FLAGS).deletion_policy == expected
    assert pool_config(settings, obj, FLAGS).deletion_policy == expected


def test_a_deletion_policy_that_cannot_be_inherited_is_unresolved():
    assert machine_config(OwnSettings(), None, FLAGS).deletion_policy is None
    own = OwnSettings(deletion_policy=DeletionPolicy.DESTROY)
    assert machine_config(own, None, FLAGS).deletion_policy is DeletionPolicy.DESTROY


@pytest.mark.parametrize(
    ("own", "default", "owner_ends", "expected"),
    [
        (True, None, False, True),
        (True, None, True, True),
        (False, True, False, False),
        (None, True, False, True),
        (None, True, True, False),
        (None, None, False, False),
    ],
)
def test_the_deletion_protection_of_a_worker(own, default, owner_ends, expected):
    obj = terraform_cluster(
        deletion_protection=not expected, defaults=ClusterDefaults(deletion_protection=default)
    )
    settings = OwnSettings(deletion_protection=own, owner_ends=owner_ends)
    assert machine_config(settings, obj, FLAGS).deletion_protection is expected
    assert pool_config(settings, obj, FLAGS).deletion_protection is expected


def test_nothing_is_inherited_from_a_cluster_that_cannot_be_found():
    assert machine_config(OwnSettings(), None, FLAGS).deletion_protection is False
    own = OwnSettings(deletion_protection=True)
    assert machine_config(own, None, FLAGS).deletion_protection is True


@pytest.mark.parametrize(("own", "expected"), [(True, True), (False, False), (None, False)])
def test_a_cluster_is_protected_by_its_own_field_alone(own, expected):
    obj = terraform_cluster(
        deletion_protection=own, defaults=ClusterDefaults(deletion_protection=True)
    )
    assert cluster_config(obj, FLAGS).deletion_protection is expected


def test_health_is_read_for_remediation_only():
    quiet = machine_config(OwnSettings(), terraform_cluster(), FLAGS)
    assert (quiet.health_interval, quiet.annotate_machine) == (OFF, False)
    asked = with_defaults(remediation=Remediation(annotate_machine=True))
    config = machine_config(OwnSettings(), asked, FLAGS)
    assert (config.health_interval, config.unhealthy_threshold) == (seconds(300), 3)


def test_remediation_is_merged_field_by_field():
    default = Remediation(
        annotate_machine=True, unhealthy_threshold=9, health_check_interval_seconds=90
    )
    own = Remediation(unhealthy_threshold=2)
    config = machine_config(OwnSettings(remediation=own), with_defaults(remediation=default), FLAGS)
    assert config.annotate_machine
    assert (config.unhealthy_threshold, config.health_interval) == (2, seconds(90))
    refused = OwnSettings(remediation=Remediation(annotate_machine=False))
    assert not machine_config(refused, with_defaults(remediation=default), FLAGS).annotate_machine


@pytest.mark.parametrize(("own", "default", "expected"), [(15, 30, 15), (0, 30, 30), (0, 0, 60)])
def test_the_membership_interval_of_a_pool(own, default, expected):
    obj = with_defaults(membership_refresh_interval_seconds=default)
    config = pool_config(OwnSettings(membership_interval=own), obj, FLAGS)
    assert config.membership_interval == seconds(expected)


def test_the_job_limit_is_the_clusters():
    assert (
        machine_config(OwnSettings(), terraform_cluster(max_active_jobs=2), FLAGS).max_active_jobs
        == 2
    )
    assert machine_config(OwnSettings(), None, FLAGS).max_active_jobs == 7


def test_job_policies_come_from_the_object_the_defaults_and_the_cluster():
    obj = terraform_cluster(
        jobs=JobPolicy(active_deadline_seconds=3, lock_timeout_seconds=3, service_account_name="c"),
        defaults=ClusterDefaults(jobs=JobPolicy(active_deadline_seconds=2, lock_timeout_seconds=0)),
    )
    merged = machine_config(OwnSettings(jobs=JobPolicy(active_deadline_seconds=1)), obj, FLAGS).jobs
    assert merged.active_deadline_seconds == 1
    assert merged.lock_timeout_seconds == 0
    assert merged.service_account_name == "c"
    assert merged.successful_jobs_history_limit is None


def test_a_limit_of_zero_is_a_setting():
    own, default = (
        JobPolicy(failed_jobs_history_limit=limit, successful_jobs_history_limit=limit)
        for limit in (0, 5)
    )
    merged = merge_jobs(own, default)
    assert (merged.failed_jobs_history_limit, merged.successful_jobs_history_limit) == (0, 0)


def test_environments_are_joined_and_the_nearest_wins():
    own = JobPolicy(env=[EnvVar(name="B", value="own"), EnvVar(name="A", value="own")])
    default = JobPolicy(env=[EnvVar(name="C", value="default"), EnvVar(name="A", value="default")])
    merged = merge_jobs(own, None, default)
    assert [(entry.name, entry.value) for entry in merged.env] == [
        ("B", "own"),
        ("A", "own"),
        ("C", "default"),
    ]


def test_pull_secrets_are_joined_without_repetition():
    def policy(*names):
        return JobPolicy(image_pull_secrets=[LocalObjectReference(name=name) for name in names])

    merged = merge_jobs(policy("b", "a", "b"), policy("c", "a", ""))
    assert [ref.name for ref in merged.image_pull_secrets] == ["b", "a", "c"]


def test_resources_and_security_contexts_are_replaced_whole():
    own = JobPolicy(resources=Resources(limits={"cpu": 1}), security_context={})
    default = JobPolicy(
        resources=Resources(requests={"memory": "1Gi"}),
        security_context={"runAsUser": 5},
        pod_security_context={"fsGroup": 5},
    )
    merged = merge_jobs(own, default)
    assert merged.resources == Resources(limits={"cpu": 1})
    assert merged.security_context == {}
    assert merged.pod_security_context == {"fsGroup": 5}


def test_merging_changes_none_of_the_policies():
    own = JobPolicy(env=[EnvVar(name="A")])
    default = JobPolicy(env=[EnvVar(name="B")], active_deadline_seconds=5)
    before = msgspec.json.encode([own, default])
    merge_jobs(own, default).env.append(EnvVar(name="C"))
    assert msgspec.json.encode([own, default]) == before

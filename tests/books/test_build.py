"""The Job of a run (runs.md: The Job)."""

import msgspec
import pytest

from captfctl.model import core, keys
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import JOBS
from captfctl.model.terraform import IdentityKind, JobPolicy
from captfctl.terraform.job.arguments import hcl_map
from captfctl.terraform.job.build import RunnerSettings, build_job, build_run_secret
from captfctl.terraform.job.run import RestoreSource
from tests.support.runs import FILES, IMAGE, RUNNER, run_spec

CLUSTER = Owner("TerraformCluster", "team-a", "prod", "uid-1", "prod")
MACHINE = Owner("TerraformMachine", "team-a", "md-0", "uid-2", "prod")
POOL = Owner("TerraformMachinePool", "team-a", "pool", "uid-3", "prod")


def source(job: core.Job) -> core.Container:
    (container,) = job.spec.template.spec.containers
    return container


def built(run, settings=RUNNER) -> core.Job:
    return build_job(run, settings)


def test_cluster_apply_is_the_specified_job():
    run = run_spec(CLUSTER, state_lock_version="17")
    job = built(run)
    labels = {
        keys.OWNER_KIND: "TerraformCluster",
        keys.OWNER_NAME: "prod",
        keys.CLUSTER_NAME: "prod",
        keys.MANAGED: "true",
        keys.OP: "apply",
        keys.ATTEMPT: "1",
    }
    assert job.metadata.labels == labels
    assert job.spec.template.metadata.labels == labels
    assert job.metadata.annotations == {
        keys.INPUTS_HASH: "h2:abc",
        keys.STATE_LOCK_VERSION: "17",
    }
    (ref,) = job.metadata.owner_references
    assert (ref.kind, ref.uid, ref.controller, ref.block_owner_deletion) == (
        "TerraformCluster",
        "uid-1",
        True,
        True,
    )
    assert job.spec.backoff_limit == 0
    assert job.spec.active_deadline_seconds == 3600
    assert job.spec.ttl_seconds_after_finished is None
    pod = job.spec.template.spec
    assert pod.restart_policy == "Never"
    assert pod.termination_grace_period_seconds == 600
    assert pod.service_account_name == "captf-runner"
    assert pod.security_context == {
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert job.spec.template.metadata.annotations == {keys.SAFE_TO_EVICT: "false"}


def test_written_job_keeps_zero_values_that_count():
    wire = msgspec.json.decode(JOBS.encode(built(run_spec(CLUSTER))))
    assert wire["spec"]["backoffLimit"] == 0
    assert "ttlSecondsAfterFinished" not in wire["spec"]


def test_runner_is_copied_by_an_init_container_without_rights():
    (init,) = built(run_spec(CLUSTER)).spec.template.spec.init_containers
    assert init.image == RUNNER.image
    assert init.command == ["/runner", "copy", "/captf/bin/runner"]
    assert init.resources.limits == {"cpu": "100m", "memory": "64Mi"}
    assert init.security_context["runAsUser"] == 65532
    assert init.security_context["capabilities"] == {"drop": ["ALL"]}
    (mount,) = init.volume_mounts
    assert (mount.name, mount.mount_path, mount.read_only) == ("runner", "/captf/bin", False)


def test_arguments_of_a_cluster_apply_come_in_the_specified_order():
    run = run_spec(
        CLUSTER,
        force_unlock="lock-1",
        expect_plan="p2:x",
        allow_deletes="h2:abc",
    )
    labels = (
        '{"captf.infrastructure.cluster.x-k8s.io/owner-kind"="TerraformCluster",'
        '"captf.infrastructure.cluster.x-k8s.io/owner-name"="prod","captf.io/managed"="true",'
        '"cluster.x-k8s.io/cluster-name"="prod","clusterctl.cluster.x-k8s.io/move"=""}'
    )
    assert source(built(run)).args == [
        "--op=apply",
        "--bin=/captf/runtime",
        f"--image={IMAGE}",
        "--module=/captf/module",
        "--providers=/captf/providers",
        "--workdir=/captf/work",
        "--config=/captf/config",
        "--lock-timeout=300s",
        "--stop-timeout=570s",
        "--backend-config=secret_suffix=f66792f9106e7299-c",
        "--backend-config=namespace=team-a",
        "--backend-config=in_cluster_config=true",
        f"--backend-config=labels={labels}",
        "--force-unlock=lock-1",
        "--guard-deletes",
        "--inputs-hash=h2:abc",
        "--allow-deletes-hash=h2:abc",
        "--expect-plan=p2:x",
        "--plan-key-file=/captf/plan-key/key",
        "--event-object=infrastructure.cluster.x-k8s.io/v1alpha1/TerraformCluster/team-a/prod/uid-1",
        f"--job-name={run.name}",
    ]


def test_only_guarded_applies_carry_the_guard():
    guarded = source(built(run_spec(POOL, approval_hash="h2:approve"))).args
    assert "--guard-deletes" in guarded
    assert "--inputs-hash=h2:approve" in guarded
    retry = run_spec(CLUSTER, unguarded=True)
    for run in (run_spec(MACHINE), run_spec(POOL), run_spec(CLUSTER, Op.DRIFT), retry):
        assert not any(a.startswith(("--guard", "--inputs-hash")) for a in source(built(run)).args)


@pytest.mark.parametrize(
    ("run", "mounted"),
    [
        (run_spec(CLUSTER, Op.PLAN), True),
        (run_spec(CLUSTER), True),
        (run_spec(POOL, approval_hash="h"), True),
        (run_spec(MACHINE, expect_plan="p2:x"), True),
        (run_spec(MACHINE), False),
        (run_spec(POOL), False),
        (run_spec(CLUSTER, unguarded=True), False),
        (run_spec(CLUSTER, Op.DRIFT), False),
        (run_spec(CLUSTER, Op.DESTROY), False),
    ],
)
def test_plan_key_is_mounted_where_a_plan_is_fingerprinted(run, mounted):
    job = built(run)
    volumes = {volume.name: volume for volume in job.spec.template.spec.volumes}
    mounts = {mount.name for mount in source(job).volume_mounts}
    assert ("plan-key" in volumes) is ("plan-key" in mounts) is mounted
    if mounted:
        secret = volumes["plan-key"].secret
        assert [(item.key, item.path) for item in secret.items] == [("key", "key")]
        assert secret.default_mode == 0o440


def test_no_event_target_without_events_or_uid():
    silent = RunnerSettings(image="runner", events=False)
    unknown = Owner("TerraformCluster", "team-a", "prod", "", "prod")
    for job in (built(run_spec(CLUSTER), silent), built(run_spec(unknown))):
        assert not any(a.startswith("--event-object") for a in source(job).args)


@pytest.mark.parametrize(("policy", "timeout"), [(0, "0s"), (None, "300s"), (7, "7s")])
def test_lock_timeout_of_zero_is_a_value(policy, timeout):
    run = run_spec(CLUSTER, policy=JobPolicy(lock_timeout_seconds=policy))
    assert f"--lock-timeout={timeout}" in source(built(run)).args


def test_environment_is_ours_then_what_the_policy_may_add():
    wanted = ["TF_VAR_x", "KUBE_X", "KUBERNETES_SERVICE_HOST", "HOME", "FOO"]
    policy = JobPolicy(env=[core.EnvVar(name=name, value="v") for name in wanted])
    container = source(built(run_spec(CLUSTER, policy=policy)))
    assert [(entry.name, entry.value) for entry in container.env] == [
        ("TF_IN_AUTOMATION", "1"),
        ("TF_INPUT", "0"),
        ("HOME", "/captf/work"),
        ("TMPDIR", "/tmp"),
        ("KUBE_NAMESPACE", "team-a"),
        ("CHECKPOINT_DISABLE", "1"),
        ("FOO", "v"),
    ]
    assert container.env_from[0].secret_ref.name == "captf-creds-main"


@pytest.mark.parametrize(
    ("capabilities", "dropped"),
    [
        ({"add": ["X"], "drop": ["Y"]}, ["ALL", "Y"]),
        ({"drop": ["ALL"]}, ["ALL"]),
        ({}, ["ALL"]),
    ],
)
def test_users_capabilities_never_keep_any_undropped(capabilities, dropped):
    policy = JobPolicy(security_context={"capabilities": capabilities, "runAsUser": 1000})
    context = source(built(run_spec(CLUSTER, policy=policy))).security_context
    assert context["capabilities"]["drop"] == dropped
    assert context["capabilities"].get("add") == capabilities.get("add")
    assert context["runAsUser"] == 1000
    assert context["readOnlyRootFilesystem"] is True


def test_policy_overlays_reach_the_pod():
    policy = JobPolicy(
        active_deadline_seconds=7200,
        service_account_name="custom",
        image_pull_secrets=[core.LocalObjectReference(name=n) for n in ("b", "a", "b", "")],
        resources=core.Resources(requests={"cpu": "1"}),
        pod_security_context={"fsGroup": 1, "runAsUser": 2},
    )
    job = built(run_spec(CLUSTER, policy=policy, image_pull_policy="Always"))
    pod = job.spec.template.spec
    assert job.spec.active_deadline_seconds == 7200
    assert pod.service_account_name == "custom"
    assert [ref.name for ref in pod.image_pull_secrets] == ["b", "a"]
    assert pod.security_context["fsGroup"] == 1
    assert pod.security_context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert source(job).resources == policy.resources
    assert source(job).image_pull_policy == "Always"


def test_default_resources_bound_memory_and_not_cpu():
    resources = source(built(run_spec(CLUSTER))).resources
    assert resources.requests == {"cpu": "250m", "memory": "2Gi", "ephemeral-storage": "1Gi"}
    assert resources.limits == {"memory": "2Gi"}


def test_restore_projects_the_backups_chunks_beside_its_inputs():
    restore = RestoreSource(serial=5, backup="b", secrets=("b", "b-part-1"), resources=3)
    run = run_spec(CLUSTER, Op.RESTORE, inputs_hash="", restore=restore)
    job = built(run)
    volume = next(v for v in job.spec.template.spec.volumes if v.name == "config")
    sources = [projection.secret for projection in volume.projected.sources]
    assert [s.name for s in sources] == [f"captf-run-{run.name}", "b", "b-part-1"]
    assert [s.items[0].path for s in sources[1:]] == ["restore/0", "restore/1"]
    assert [s.items[0].key for s in sources[1:]] == ["tfstate", "tfstate"]
    assert volume.projected.default_mode == 0o440
    args = source(job).args
    assert args[args.index("--restore-chunks=2") + 1] == "--restore-resources=3"
    assert job.metadata.annotations == {keys.RESTORE_SERIAL: "5", keys.INPUTS_HASH: ""}


def test_annotations_tell_what_an_apply_answers():
    job = built(
        run_spec(
            CLUSTER,
            plan="prod-plan",
            expect_plan="p2:x",
            drift_remediation=True,
            after_failed_apply=True,
            after_interrupted_apply="j1",
            extra_annotations={"captf.io/cluster-outputs-hash": "e"},
        )
    )
    notes = job.metadata.annotations
    assert notes[keys.PLAN] == "prod-plan"
    assert notes[keys.APPROVED_PLAN] == "p2:x"
    assert notes[keys.DRIFT_REMEDIATION] == "true"
    assert notes[keys.AFTER_FAILED_APPLY] == "true"
    assert notes[keys.AFTER_INTERRUPTED_APPLY] == "j1"
    assert notes["captf.io/cluster-outputs-hash"] == "e"


def test_fallback_images_are_noted_for_runs_that_may_change_their_image():
    drift = built(run_spec(CLUSTER, Op.DRIFT, fallback_images=("a", "b")))
    assert drift.metadata.annotations == {keys.IMAGE_FALLBACKS: '["a","b"]'}
    apply = built(run_spec(CLUSTER, fallback_images=("a",)))
    assert keys.IMAGE_FALLBACKS not in apply.metadata.annotations


def test_volumes_are_bounded_and_secrets_not_world_readable():
    volumes = {v.name: v for v in built(run_spec(MACHINE)).spec.template.spec.volumes}
    sizes = {name: v.empty_dir.size_limit for name, v in volumes.items() if v.empty_dir}
    assert sizes == {"runner": "128Mi", "work": "8Gi", "tmp": "1Gi"}
    assert volumes["config"].secret.default_mode == 0o440
    assert volumes["creds"].secret.default_mode == 0o440
    assert volumes["creds"].secret.secret_name == "captf-creds-main"
    read_only = {m.name: m.read_only for m in source(built(run_spec(MACHINE))).volume_mounts}
    assert read_only == {
        "runner": True,
        "work": False,
        "tmp": False,
        "config": True,
        "creds": True,
    }


def test_hcl_map_is_sorted_and_quoted():
    assert hcl_map({"b": "", "a": "x"}) == '{"a"="x","b"=""}'


@pytest.mark.parametrize("value", ['a"', "a\\", "${file}", "%{if}"])
def test_hcl_map_refuses_what_hcl_would_interpret(value):
    with pytest.raises(ValueError, match="cannot be given"):
        hcl_map({"a": value})


def test_per_run_secret_belongs_to_the_job_and_tells_what_ran():
    run = run_spec(CLUSTER, identity_kind=IdentityKind.SECRET, identity="local")
    job = built(run)
    job.metadata.uid = "job-uid"
    secret = build_run_secret(run, job)
    assert secret.metadata.name == f"captf-run-{run.name}"
    assert secret.metadata.labels == {keys.MANAGED: "true"}
    assert secret.data == FILES
    assert secret.metadata.annotations == {
        keys.IMAGE: IMAGE,
        keys.IDENTITY: "local",
        keys.IDENTITY_KIND: "Secret",
        keys.INPUTS_HASH: "h2:abc",
    }
    (ref,) = secret.metadata.owner_references
    assert (ref.kind, ref.uid, ref.controller, ref.block_owner_deletion) == (
        "Job",
        "job-uid",
        None,
        None,
    )

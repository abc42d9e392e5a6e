"""Names, attempts and whose Jobs they are (runs.md: Names of Jobs)."""

import pytest

from captfctl.model import names
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.runs.jobs import next_attempt
from captfctl.runs.reader import own_jobs
from tests.support.runs import World, run_spec


def owner(kind: str, name: str) -> Owner:
    return Owner(kind, "team-a", name, "uid-1", "prod")


@pytest.mark.parametrize(
    ("op", "attempt", "tick", "expected"),
    [
        (Op.APPLY, 1, "", "dbb569"),
        (Op.APPLY, 2, "", "3489af"),
        (Op.RESTORE, 1, "", "a3b650"),
        (Op.DRIFT, 1, "2026-09-25T12:00:00Z", "092531"),
        (Op.APPLY, 1, "remediate/2026-09-25T12:00:00Z", "f37374"),
        (Op.RESTORE, 1, "restore/captf-state-backup-0123456789abcdef-m-7", "158d59"),
    ],
)
def test_hash_in_the_name_depends_on_inputs_op_attempt_and_tick(op, attempt, tick, expected):
    run = run_spec(owner("TerraformMachine", "a"), op, attempt, inputs_hash="h1:abc", tick=tick)
    assert run.name.endswith(f"-{expected}")


@pytest.mark.parametrize(
    ("kind", "name", "op", "attempt", "tick", "expected"),
    [
        (
            "TerraformMachine",
            "prod-md-0-abcde",
            Op.APPLY,
            1,
            "",
            "captf-m-prod-md-0-abcde-apply-a1-dbb569",
        ),
        ("TerraformCluster", "a" * 33, Op.APPLY, 1, "", f"captf-c-{'a' * 33}-apply-a1-dbb569"),
        (
            "TerraformCluster",
            "a" * 34,
            Op.APPLY,
            1,
            "",
            "captf-c-a27c896c48592048-apply-a1-dbb569",
        ),
        (
            "TerraformCluster",
            "a" * 33,
            Op.APPLY,
            10,
            "",
            "captf-c-852785c805c77e71-apply-a10-c354dc",
        ),
        (
            "TerraformMachinePool",
            "pool",
            Op.REFRESH,
            2,
            "2026-09-25T12:00:00Z",
            "captf-mp-pool-refresh-a2-bb2956",
        ),
    ],
)
def test_job_name_keeps_the_objects_name_while_it_fits(kind, name, op, attempt, tick, expected):
    run = run_spec(owner(kind, name), op, attempt, inputs_hash="h1:abc", tick=tick)
    assert run.name == expected
    assert len(run.name) <= 57


def test_pod_of_the_objects_job_is_recognised():
    for name in ("prod", "a" * 60):
        job = run_spec(owner("TerraformCluster", name)).name
        assert names.owns_pod("TerraformCluster", name, f"{job}-x7k2p")


@pytest.mark.parametrize(
    "pod",
    [
        "captf-c-prod-apply-a1-dbb569-x7k2",
        "captf-c-other-apply-a1-dbb569-x7k2p",
        "captf-c-prod-apply-a01-dbb569-x7k2p",
        "captf-c-prod-destroyx-a1-dbb569-x7k2p",
        "captf-m-prod-apply-a1-dbb569-x7k2p",
        "laptop",
        "my-laptop.example.org",
        "",
    ],
)
def test_any_other_host_is_not_taken_for_a_pod_of_the_object(pod):
    assert not names.owns_pod("TerraformCluster", "prod", pod)


def test_attempt_follows_the_highest_retained_one_of_the_op():
    world = World()
    world.finished(attempt=1)
    world.finished(attempt=3, ok=False)
    odd = world.finished(attempt=4)
    odd.metadata.labels["captf.infrastructure.cluster.x-k8s.io/attempt"] = "x"
    jobs = [
        job for job in own_jobs(world.reader, world.owner) if job.metadata.name != odd.metadata.name
    ]
    assert next_attempt([*jobs, odd], Op.APPLY) == 4
    assert next_attempt([], Op.APPLY) == 1


def test_attempt_of_one_op_does_not_count_for_another():
    world = World()
    world.finished(Op.DRIFT, attempt=9)
    assert next_attempt(own_jobs(world.reader, world.owner), Op.APPLY) == 1


def test_jobs_of_an_earlier_object_of_the_name_are_not_the_objects():
    world = World()
    earlier = Owner("TerraformCluster", "team-a", "prod", "uid-earlier", "prod")
    world.add_job(run_spec(earlier, attempt=7))
    mine = world.add_job(world.run(attempt=1, tick="t"))
    assert [job.metadata.name for job in own_jobs(world.reader, world.owner)] == [
        mine.metadata.name
    ]


def test_cluster_lease_is_named_by_namespace_and_cluster():
    assert names.cluster_lease("team-a", "prod") == "captf-cluster-687e6377eb6e7c06"

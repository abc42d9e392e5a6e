"""Names that are derived from other names (metadata.md: Secrets and Leases of an object)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from captfctl.model import names
from captfctl.model.ops import Op

TICK = "2026-09-25T12:00:00Z"
KINDS = ["TerraformCluster", "TerraformMachine", "TerraformMachinePool"]


@pytest.mark.parametrize(
    ("inputs_hash", "op", "attempt", "tick", "expected"),
    [
        ("h2:00", Op.APPLY, 1, "", "885b8e"),
        ("h1:abc", Op.APPLY, 1, "", "dbb569"),
        ("h1:abc", Op.APPLY, 2, "", "3489af"),
        ("h1:abc", Op.RESTORE, 1, "", "a3b650"),
        ("h1:abc", Op.DRIFT, 1, TICK, "092531"),
        ("h1:abc", Op.APPLY, 1, f"remediate/{TICK}", "f37374"),
        ("h1:abc", Op.RESTORE, 1, "restore/captf-state-backup-0123456789abcdef-m-7", "158d59"),
    ],
)
def test_the_hash_in_a_jobs_name(inputs_hash, op, attempt, tick, expected):
    assert names.run_hash(inputs_hash, op, attempt, tick) == expected


@pytest.mark.parametrize(
    ("kind", "name", "op", "attempt", "hash6", "expected"),
    [
        (
            "TerraformMachine",
            "prod-md-0-abcde",
            Op.APPLY,
            1,
            "dbb569",
            "captf-m-prod-md-0-abcde-apply-a1-dbb569",
        ),
        (
            "TerraformCluster",
            "a" * 33,
            Op.APPLY,
            1,
            "dbb569",
            f"captf-c-{'a' * 33}-apply-a1-dbb569",
        ),
        (
            "TerraformCluster",
            "a" * 34,
            Op.APPLY,
            1,
            "dbb569",
            "captf-c-a27c896c48592048-apply-a1-dbb569",
        ),
        (
            "TerraformCluster",
            "a" * 33,
            Op.APPLY,
            10,
            "c354dc",
            "captf-c-852785c805c77e71-apply-a10-c354dc",
        ),
        (
            "TerraformMachinePool",
            "pool",
            Op.REFRESH,
            2,
            "bb2956",
            "captf-mp-pool-refresh-a2-bb2956",
        ),
    ],
)
def test_the_name_of_a_job(kind, name, op, attempt, hash6, expected):
    assert names.job_name(kind, name, op, attempt, hash6) == expected


def test_hash_and_name_belong_together():
    assert names.run_hash("h1:abc", Op.REFRESH, 2, TICK) == "bb2956"
    assert names.run_hash("h1:abc", Op.APPLY, 10, "") == "c354dc"


def test_the_longest_name_that_is_kept_has_57_characters():
    assert len(names.job_name("TerraformCluster", "a" * 33, Op.APPLY, 1, "dbb569")) == 57


@given(
    st.sampled_from(KINDS),
    st.from_regex(r"[a-z0-9][a-z0-9-]{0,251}[a-z0-9]", fullmatch=True),
    st.sampled_from(list(Op)),
    st.integers(1, 2**31 - 1),
    st.from_regex(r"[0-9a-f]{6}", fullmatch=True),
)
def test_a_pod_of_every_job_has_a_host_name_and_is_recognised(kind, name, op, attempt, hash6):
    job = names.job_name(kind, name, op, attempt, hash6)
    assert len(job) <= 57
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", job)
    assert names.owns_pod(kind, name, f"{job}-x7k2p")


POD = "captf-m-prod-md-0-abcde-apply-a1-dbb569-x7k2p"


def owns(pod, kind="TerraformMachine", name="prod-md-0-abcde"):
    return names.owns_pod(kind, name, pod)


def test_a_pod_of_the_object_is_recognised_also_when_its_name_is_hashed():
    assert owns(POD)
    long = "a" * 60
    job = names.job_name("TerraformCluster", long, Op.DESTROY, 3, "abcdef")
    assert owns(f"{job}-x7k2p", "TerraformCluster", long)


@pytest.mark.parametrize(
    "pod",
    [
        POD[:-1],
        POD + "x",
        POD.replace("-a1-", "-a01-"),
        POD.replace("-a1-", "-a0-"),
        POD.replace("-a1-", "-a99999999999-"),
        POD.replace("-a1-", "-a9999999999-"),
        POD.replace("apply", "destroyx"),
        POD.replace("captf-m-", "captf-c-"),
        POD.replace("abcde-apply", "other-apply"),
        "alices-laptop",
        "apply-a1-dbb569-x7k2p",
        "",
    ],
)
def test_any_other_host_is_not_a_pod_of_the_object(pod):
    assert not owns(pod)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("TerraformCluster", "f66792f9106e7299-c"),
        ("TerraformMachine", "2086662b5077b531-m"),
        ("TerraformMachinePool", "2f26b4a1d52c4792-mp"),
    ],
)
def test_the_suffix_of_a_state(kind, expected):
    assert names.state_suffix(kind, "team-a", "prod") == expected
    assert names.state_secret(expected) == f"tfstate-default-{expected}"
    assert names.state_secret(expected, 2) == f"tfstate-default-{expected}-part-2"
    assert names.state_lock(expected) == f"lock-tfstate-default-{expected}"
    assert names.run_lease(expected) == f"captf-run-{expected}"


def test_a_kind_without_runs_has_no_suffix():
    with pytest.raises(KeyError):
        names.state_suffix("Cluster", "team-a", "prod")


@given(st.sampled_from(KINDS), st.text(max_size=30), st.text(max_size=30))
def test_a_suffix_is_a_label_value_and_no_chunk_number(kind, namespace, name):
    suffix = names.state_suffix(kind, namespace, name)
    assert len(suffix) <= 19
    assert re.search(r"-\d+$", suffix) is None


def test_a_label_value_is_shortened_only_when_it_does_not_fit():
    assert names.label_value("a" * 63) == "a" * 63
    assert names.label_value("a" * 64) == "ffe054fe7ae0cb6d"


def test_the_lease_of_a_cluster():
    assert names.cluster_lease("team-a", "prod") == "captf-cluster-687e6377eb6e7c06"


def test_records_have_readable_names_while_they_fit():
    assert names.attempt_record("TerraformCluster", "prod") == "captf-inputs-c-prod"
    assert names.applied_record("TerraformMachine", "prod") == "captf-applied-m-prod"
    assert names.plan_key("TerraformMachinePool", "prod") == "captf-plankey-mp-prod"
    assert names.run_secret("captf-c-prod-apply-a1-dbb569") == (
        "captf-run-captf-c-prod-apply-a1-dbb569"
    )


@pytest.mark.parametrize("record", [names.attempt_record, names.applied_record, names.plan_key])
def test_longer_names_are_cut_and_told_apart_by_a_hash(record):
    fitting = 253 - len(record("TerraformCluster", ""))
    assert record("TerraformCluster", "a" * fitting).endswith("a" * fitting)
    shortened = record("TerraformCluster", "a" * (fitting + 1))
    assert len(shortened) == 253
    assert re.fullmatch(r"captf-[a-z]+-c-a+-[0-9a-f]{16}", shortened)
    assert shortened != record("TerraformCluster", "a" * (fitting + 2))


def test_a_cut_name_does_not_end_in_a_separator_before_its_hash():
    name = "a" * 220 + "-." * 20
    assert re.fullmatch(
        r"captf-inputs-c-a+-[0-9a-f]{16}", names.attempt_record("TerraformCluster", name)
    )


def test_the_mirror_of_an_identity():
    assert names.credentials_mirror("cloud") == "captf-creds-cloud"
    assert re.fullmatch(r"captf-creds-[0-9a-f]{16}", names.credentials_mirror("a" * 250))

"""Assembling a backup, pushing it, and counting what it holds (runner.md: Restore)."""

import gzip
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import restore
from runner.workdir import PrepareError
from tests.runner.harness import Job

STATE = json.dumps({"version": 4, "serial": 3, "note": "größe", "pad": os.urandom(500).hex()})


def _chunks(job: Job, data: bytes, count: int) -> list[str]:
    directory = job.config / "restore"
    directory.mkdir(exist_ok=True)
    size = -(-len(data) // count)
    for index in range(count):
        (directory / str(index)).write_bytes(data[index * size : (index + 1) * size])
    return ["--op=restore", f"--restore-chunks={count}"]


@pytest.mark.parametrize("count", [1, 2, 32])
def test_the_chunks_put_together_are_the_state_that_is_pushed(job: Job, count):
    flags = _chunks(job, gzip.compress(STATE.encode()), count)
    job.play("state-push", script=f"cp {job.workdir}/restore.tfstate {job.marker('pushed')}")
    outcome = job.run(*flags)
    assert outcome.exit == 0
    assert job.marker("pushed").read_text() == STATE
    assert oct((job.workdir / "restore.tfstate").stat().st_mode)[-3:] == "600"
    assert sorted(entry.name for entry in job.root.iterdir()) == [
        "main.tf.json",
        "terraform.tfvars.json",
    ]


def test_what_follows_the_first_gzip_member_is_ignored(job: Job):
    data = gzip.compress(STATE.encode()) + b"garbage" + gzip.compress(b"{}")
    assert job.run(*_chunks(job, data, 1)).exit == 0
    assert (job.workdir / "restore.tfstate").read_text() == STATE


def _broken(job: Job, case: str) -> list[str]:
    whole = gzip.compress(STATE.encode())
    if case == "a missing chunk":
        return [*_chunks(job, whole, 2), "--restore-chunks=3"]
    data = {
        "not gzip": b"{}",
        "empty": b"",
        "cut off": whole[:-10],
        "bad checksum": whole[:-8] + bytes(8),
        "not JSON": gzip.compress(b"{"),
        "more than JSON": gzip.compress(b"{} {}"),
        "too deep": gzip.compress(b"[" * 100_000),
    }.get(case, whole)
    flags = _chunks(job, data, 1)
    counts = {"no chunks": 0, "33 chunks": 33, "a negative count": -1}
    return [*flags, f"--restore-chunks={counts[case]}"] if case in counts else flags


@pytest.mark.parametrize(
    "case",
    [
        *("no chunks", "33 chunks", "a negative count", "a missing chunk", "not gzip", "empty"),
        *("cut off", "bad checksum", "not JSON", "more than JSON", "too deep"),
    ],
)
def test_a_backup_that_is_not_intact_starts_nothing(job: Job, case):
    outcome = job.run(*_broken(job, case))
    assert outcome.exit == 1
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", "prepare")
    assert outcome.error["tail"]
    assert outcome.calls == []
    assert not (job.workdir / "restore.tfstate").exists()


@pytest.mark.parametrize(("extra", "accepted"), [(0, True), (1, False)])
def test_the_size_limit_is_exact(job: Job, monkeypatch, extra, accepted):
    monkeypatch.setattr(restore, "LARGEST_STATE", len(STATE.encode()) - extra)
    outcome = job.run(*_chunks(job, gzip.compress(STATE.encode()), 2))
    assert (outcome.exit == 0) is accepted
    assert accepted or outcome.error["step"] == "prepare"


def test_a_bomb_is_given_up_at_the_limit(tmp_path):
    (tmp_path / "restore").mkdir()
    bomb = gzip.compress(bytes(restore.LARGEST_STATE + 1), 9)
    (tmp_path / "restore" / "0").write_bytes(bomb)
    with pytest.raises(PrepareError, match="more than 67108864 bytes"):
        restore.assemble(str(tmp_path), 1)


@pytest.mark.parametrize(("expected", "exit_code"), [(1, 1), (0, 0)])
def test_a_state_without_managed_resources_fails_where_the_backup_had_some(
    job: Job, expected, exit_code
):
    job.play("state-list", "data.a.b\nmodule.role.data.c.d\n")
    flags = _chunks(job, gzip.compress(b"{}"), 1)
    outcome = job.run(*flags, f"--restore-resources={expected}")
    assert outcome.exit == exit_code
    assert "data.a.b" in outcome.out
    if exit_code:
        assert (outcome.error["kind"], outcome.error["step"]) == ("step", "state-list")
        assert outcome.document["steps"][-1]["exit"] == 0


@pytest.mark.parametrize(
    ("address", "managed"),
    [
        ("a.b", True),
        ("data.a.b", False),
        ('module.m["a.b"].data.x.y', False),
        ('module.m["a.b"].t.z["k"]', True),
        ("module.outer[1].module.inner.t.w", True),
        ("module.outer[1].module.inner.data.t.w", False),
        (r'module.m["quote\"].data.x"].t.w', True),
        (r'module.m["quote\"]"].data.t.w', False),
        ("database.x", True),
        ("module.broken", True),
        ('module.m["open', True),
        ("module.m[0]data.x", True),
        ("   ", False),
        ("module.m.t." + "x" * (2 << 20), True),
    ],
)
def test_an_address_counts_by_its_resource(address, managed):
    assert restore.managed_instances(f"{address}\r\n".encode()) == int(managed)


@given(st.binary(max_size=200))
def test_any_listing_can_be_counted(listing):
    assert 0 <= restore.managed_instances(listing) <= listing.count(b"\n") + 1


@given(st.binary(max_size=300), st.booleans())
def test_no_chunk_is_answered_with_anything_but_a_prepare_error(tmp_path_factory, data, packed):
    config = tmp_path_factory.mktemp("config")
    (config / "restore").mkdir()
    (config / "restore" / "0").write_bytes(gzip.compress(data) if packed else data)
    try:
        state = restore.assemble(str(config), 1)
    except PrepareError:
        return
    json.loads(state.decode("utf-8", "replace"))

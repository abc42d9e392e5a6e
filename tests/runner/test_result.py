"""The result document and how it is made to fit (runner.md: The result document)."""

import json
import os
import stat

from hypothesis import given
from hypothesis import strategies as st

from runner.result import Result
from runner.wire import RESULT_MAX, Changes, Drift, Failure, Plan, StepRecord
from tests.runner.harness import Job


def _result(**members: object) -> Result:
    result = Result("apply", "registry.example/r/i:v1", ("/captf/runtime",))
    for name, value in members.items():
        setattr(result, name, value)
    return result


def _document(result: Result) -> dict:
    data = result.encode()
    assert len(data) <= RESULT_MAX
    return json.loads(data)


RESOURCES = tuple(f"module.role.thing.this[{number:03}] (create)" for number in range(50))
PLAN = Plan(hash="p2:" + "a" * 64, create=50, replace=2, output_changes=3, resources=RESOURCES)


def test_a_small_result_is_written_whole():
    result = _result(
        runtime_version="1.12.6",
        steps=[StepRecord("init", 0, 1.0), StepRecord("apply", 0, 12.3)],
        changes=Changes(add=1, imported=2),
    )
    assert _document(result) == {
        "version": 1,
        "op": "apply",
        "image": {"ref": "registry.example/r/i:v1", "providersMirror": False},
        "runtime": {"command": ["/captf/runtime"], "version": "1.12.6"},
        "steps": [
            {"name": "init", "exit": 0, "seconds": 1.0},
            {"name": "apply", "exit": 0, "seconds": 12.3},
        ],
        "drift": None,
        "error": None,
        "changes": {"add": 1, "change": 0, "destroy": 0, "import": 2},
    }


def test_text_is_not_escaped_to_ascii():
    data = _result(error=Failure("step", "init", "größe")).encode()
    assert "größe".encode() in data


def _sized(tail: int, **members: object) -> Result:
    return _result(error=Failure("step", "apply", "t" * tail), **members)


def test_changes_are_given_up_first():
    room = RESULT_MAX - len(_sized(0).encode())
    document = _document(_sized(room, changes=Changes(add=1)))
    assert "changes" not in document
    assert len(document["error"]["tail"]) == room


def test_then_failing_resources_then_the_tail():
    failing = tuple(f"a.b[{number}]: " + "s" * 300 for number in range(10))
    error = Failure("step", "apply", "t" * 512, failing)
    document = _document(_result(error=error, plan=PLAN, changes=Changes(add=1)))
    assert "changes" not in document
    assert 1 <= len(document["error"].get("resources", [])) <= 5
    assert document["error"]["tail"] == "t" * 512
    long = Failure("step", "apply", "the cause" + "x" * 6000, failing)
    document = _document(_result(error=long, plan=PLAN))
    assert "resources" not in document["error"]
    assert document["error"]["tail"].startswith("the cause")
    assert len(document["plan"]["resources"]) == 50


def test_a_plan_keeps_hash_and_counts_when_its_list_goes():
    big = PLAN._replace(resources=tuple(name * 5 for name in RESOURCES))
    document = _document(_result(plan=big))
    plan = document["plan"]
    assert plan["hash"] == PLAN.hash
    assert (plan["create"], plan["replace"], plan["outputChanges"]) == (50, 2, 3)
    assert plan["truncated"] is True
    assert 0 < len(plan["resources"]) < 50


def test_an_endless_image_reference_leaves_the_minimal_document():
    result = _result(
        image="i" * 5000,
        plan=PLAN,
        error=Failure("blocked", None, "summary"),
        steps=[StepRecord("init", 0, 0.1)],
    )
    assert _document(result) == {
        "version": 1,
        "op": "apply",
        "image": {"ref": "", "providersMirror": False},
        "runtime": {"command": [], "version": ""},
        "steps": [],
        "drift": None,
        "error": {"kind": "blocked", "step": None, "tail": ""},
        "plan": {
            "hash": PLAN.hash,
            "create": 50,
            "update": 0,
            "delete": 0,
            "replace": 2,
            "outputChanges": 3,
            "truncated": True,
        },
    }


def test_of_many_steps_the_first_and_the_last_are_kept():
    steps = [StepRecord(f"step-{number}-" + "n" * 100, 0, 1.0) for number in range(50)]
    kept = [step["name"] for step in _document(_result(steps=steps))["steps"]]
    assert kept[0] == steps[0].name
    assert kept[-1] == steps[-1].name
    assert 2 <= len(kept) < 50


def test_the_drifted_resources_go_all_at_once():
    drift = Drift(detected=True, create=20, resources=tuple("r" * 300 for _ in range(20)))
    document = _document(_result(drift=drift))
    assert document["drift"]["resources"] is None
    assert document["drift"]["create"] == 20
    assert document["drift"]["detected"] is True


@given(
    st.text(max_size=6000),
    st.lists(st.text(max_size=600), max_size=10),
    st.lists(st.text(max_size=400), max_size=50),
    st.text(max_size=600),
)
def test_a_result_of_any_text_fits_and_can_be_read(tail, failing, listed, image):
    result = _result(
        image=image,
        error=Failure("step", "apply", tail, tuple(failing)),
        plan=PLAN._replace(resources=tuple(listed)),
    )
    document = _document(result)
    assert document["error"]["kind"] == "step"
    assert document["plan"]["hash"] == PLAN.hash


def test_lone_surrogates_from_arguments_do_not_break_the_result():
    _document(_result(image=os.fsdecode(b"image\xff")))


def test_the_file_is_replaced_and_private_when_new(tmp_path):
    path = tmp_path / "result"
    path.write_bytes(b"x" * 10_000)
    path.chmod(0o644)
    _result().write(str(path))
    assert json.loads(path.read_bytes())["op"] == "apply"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    fresh = tmp_path / "fresh"
    _result().write(str(fresh))
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600


def test_a_defect_of_the_runner_still_leaves_a_result_and_no_traceback(job: Job, monkeypatch):
    secret = "defect-canary-0123"

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(secret)

    monkeypatch.setattr("runner.run.summary.of_step", broken)
    job.play("init", exit=1)
    outcome = job.run("--op=refresh")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "step"
    assert "RuntimeError" in outcome.error["tail"]
    assert secret not in outcome.everything
    assert "Traceback" not in outcome.err

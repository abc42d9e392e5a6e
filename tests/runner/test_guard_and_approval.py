"""The destructive guard and expected plans (runner.md: Decisions after a step)."""

import pytest

from runner import plan, summary, wire
from tests.runner.harness import PLAN_KEY, Job, plan_json

DESTRUCTIVE = (("a.gone", ["delete"]), ("a.new", ["create"]), ("a.swap", ["create", "delete"]))


def _found(job: Job, *changes: tuple[str, list[str]], outputs=None) -> str:
    """Let the runtime plan these changes; return the plan's hash."""
    document = plan_json(*changes, outputs=outputs)
    job.play("plan", exit=2)
    job.play("show", document)
    return plan.read([document.encode()], PLAN_KEY).summary.hash


def test_a_guarded_apply_without_changes_stops_with_success(job: Job):
    outcome = job.run("--op=apply", "--guard-deletes", "--inputs-hash=h")
    assert outcome.exit == 0
    assert outcome.steps == ["init", "validate", "plan"]
    assert outcome.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert "plan" not in outcome.document
    assert outcome.called == ["init", "validate", "plan"]


def test_creates_and_updates_pass_the_guard(job: Job):
    _found(job, ("a.b", ["create"]), ("a.c", ["update"]))
    job.play(
        "apply", '{"@message":"Apply complete! Resources: 1 added, 1 changed, 0 destroyed."}\n'
    )
    outcome = job.run("--op=apply", "--guard-deletes")
    assert outcome.exit == 0
    assert outcome.called[-1] == "apply"
    assert outcome.document["changes"] == {"add": 1, "change": 1, "destroy": 0}
    assert "plan" not in outcome.document


@pytest.mark.parametrize(
    ("actions", "label"),
    [
        (["delete"], "delete"),
        (["delete", "create"], "replace"),
        (["create", "delete"], "replace"),
    ],
)
def test_a_destructive_plan_without_approval_is_blocked(job: Job, actions, label):
    found = _found(job, ("a.doomed", actions), ("a.new", ["create"]), ("a.u", ["update"]))
    outcome = job.run("--op=apply", "--guard-deletes", "--inputs-hash=h")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "blocked"
    assert outcome.error["step"] is None
    assert f"a.doomed ({label})" in outcome.error["tail"]
    assert "1" in outcome.error["tail"]
    assert "a.new" not in outcome.error["tail"] and "a.u" not in outcome.error["tail"]
    assert outcome.document["plan"]["hash"] == found
    assert outcome.document["plan"]["create"] == 1
    assert "apply" not in outcome.called


@pytest.mark.parametrize(
    "flags",
    [
        ["--inputs-hash=h", "--allow-deletes-hash=other"],
        ["--inputs-hash=", "--allow-deletes-hash="],
        ["--inputs-hash=h"],
        ["--allow-deletes-hash=h"],
    ],
)
def test_an_approval_of_anything_else_does_not_pass_the_guard(job: Job, flags):
    _found(job, *DESTRUCTIVE)
    assert job.run("--op=apply", "--guard-deletes", *flags).error["kind"] == "blocked"


def test_an_approval_of_these_inputs_passes_the_guard(job: Job):
    _found(job, *DESTRUCTIVE)
    flags = ["--guard-deletes", "--inputs-hash=h", "--allow-deletes-hash=h"]
    outcome = job.run("--op=apply", *flags)
    assert outcome.exit == 0
    assert outcome.called[-1] == "apply"


def test_forgetting_importing_and_dropped_outputs_pass_the_guard(job: Job):
    _found(job, ("a.f", ["forget"]), outputs={"o": ["delete"]})
    assert job.run("--op=apply", "--guard-deletes").exit == 0


def test_a_long_list_of_destroyed_resources_is_cut_between_entries():
    names = [f"module.role.some_resource.with_a_long_name[{n:03}] (delete)" for n in range(100)]
    text = summary.blocked(names)
    assert len(text.encode()) <= 512
    listed, _, rest = text.partition(": ")[2].rpartition(" and ")
    shown = listed.split(", ")
    assert shown == names[: len(shown)]
    assert rest == f"{100 - len(shown)} more"
    assert len(shown) >= 5


def test_an_address_that_does_not_fit_is_only_counted():
    text = summary.blocked([f"{'é' * 400} (delete)", "a.b (replace)"])
    assert text.endswith(" and 2 more")
    assert len(text.encode()) <= 512


def test_the_expected_plan_is_applied_deletes_included(job: Job):
    found = _found(job, *DESTRUCTIVE)
    flags = ["--guard-deletes", "--inputs-hash=h", f"--expect-plan={found}"]
    outcome = job.run("--op=apply", *flags)
    assert outcome.exit == 0
    assert outcome.called == ["init", "validate", "plan", "show", "apply"]
    assert "plan" not in outcome.document


@pytest.mark.parametrize("expected", ["p2:" + "0" * 64, "p1:old", wire.EMPTY_PLAN])
def test_any_other_plan_than_the_expected_one_is_not_applied(job: Job, expected):
    found = _found(job, ("a.b", ["create"]))
    outcome = job.run("--op=apply", f"--expect-plan={expected}")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "plan-changed"
    assert outcome.error["step"] is None
    assert outcome.document["plan"]["hash"] == found
    for fact in (expected, found, "1 to create"):
        assert fact in outcome.error["tail"]
    assert len(outcome.error["tail"].encode()) <= 512
    assert "apply" not in outcome.called


def test_an_expected_plan_that_has_nothing_left_to_do_has_changed(job: Job):
    outcome = job.run("--op=apply", "--expect-plan=p2:" + "0" * 64)
    assert outcome.error["kind"] == "plan-changed"
    assert outcome.document["plan"] == {
        "hash": wire.EMPTY_PLAN,
        "create": 0,
        "update": 0,
        "delete": 0,
    }


def test_an_expected_empty_plan_succeeds_without_an_apply(job: Job):
    outcome = job.run("--op=apply", f"--expect-plan={wire.EMPTY_PLAN}")
    assert outcome.exit == 0
    assert outcome.called == ["init", "validate", "plan"]
    assert outcome.document["changes"] == {"add": 0, "change": 0, "destroy": 0}


def test_the_plan_operation_reports_the_plan_and_applies_nothing(job: Job):
    found = _found(job, *DESTRUCTIVE, outputs={"o": ["create"]})
    outcome = job.run("--op=plan")
    assert outcome.exit == 0
    assert outcome.document["plan"] == {
        "hash": found,
        "create": 1,
        "update": 0,
        "replace": 1,
        "delete": 1,
        "outputChanges": 1,
        "resources": ["a.gone (delete)", "a.new (create)", "a.swap (replace)"],
    }
    assert "apply" not in outcome.called


def test_a_plan_without_changes_has_the_empty_hash(job: Job):
    assert job.run("--op=plan").document["plan"]["hash"] == wire.EMPTY_PLAN


def _break_key(job: Job, case: str) -> str:
    if case == "missing":
        job.key_file.unlink()
    elif case == "31 bytes":
        job.key_file.write_bytes(bytes(31))
    return "" if case == "empty path" else str(job.key_file)


@pytest.mark.parametrize("case", ["missing", "31 bytes", "empty path"])
@pytest.mark.parametrize("flags", [["--op=plan"], ["--op=apply", "--expect-plan=p2:x"]])
def test_a_plan_and_an_approved_apply_need_the_key(job: Job, case, flags):
    path = _break_key(job, case)
    outcome = job.run(*flags, f"--plan-key-file={path}")
    assert outcome.exit == 1
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", "prepare")
    assert "plan key" in outcome.error["tail"]
    assert outcome.calls == []


@pytest.mark.parametrize("case", ["missing", "31 bytes", "empty path"])
def test_a_guarded_apply_goes_on_without_the_key_and_reports_no_hash(job: Job, case):
    _found(job, *DESTRUCTIVE)
    path = _break_key(job, case)
    outcome = job.run("--op=apply", "--guard-deletes", f"--plan-key-file={path}")
    assert outcome.error["kind"] == "blocked"
    assert outcome.document["plan"]["hash"] == ""
    assert outcome.document["plan"]["delete"] == 1
    assert "fingerprint" in outcome.err


@pytest.mark.parametrize("op", ["apply", "drift", "destroy"])
def test_operations_that_fingerprint_nothing_do_not_look_at_the_key(job: Job, op):
    job.key_file.unlink()
    outcome = job.run(f"--op={op}")
    assert outcome.exit == 0
    assert "fingerprint" not in outcome.err

"""The exact commands of every operation, and how each ends (runner.md: Steps)."""

import json

import pytest

from tests.runner.harness import Job, plan_json

COMMON = ["-input=false", "-no-color", "-lock-timeout=300s"]
VAR_FILE = "-var-file=terraform.tfvars.json"


def _vectors(job: Job) -> dict[str, list[str]]:
    plan_file, apply_file = f"{job.workdir}/plan.tfplan", f"{job.workdir}/apply.tfplan"
    plan = ["plan", *COMMON, "-detailed-exitcode"]
    return {
        "version": ["version", "-json"],
        "init": ["init", *COMMON, "-backend-config=a=b", '-backend-config=l={"x"="y"}'],
        "validate": ["validate", "-json", "-no-color"],
        "apply": ["apply", *COMMON, "-json", "-auto-approve", VAR_FILE],
        "apply saved": ["apply", *COMMON, "-json", apply_file],
        "destroy": ["destroy", *COMMON, "-json", "-auto-approve", VAR_FILE],
        "refresh": ["apply", *COMMON, "-refresh-only", "-auto-approve", VAR_FILE],
        "plan": [*plan, VAR_FILE, f"-out={plan_file}"],
        "plan saved": [*plan, VAR_FILE, f"-out={apply_file}"],
        "plan drift": [*plan, "-refresh=false", VAR_FILE, f"-out={plan_file}"],
        "show": ["show", "-json", "-no-color", plan_file],
        "show saved": ["show", "-json", "-no-color", apply_file],
        "push": [
            *("state", "push", "-force", "-lock-timeout=300s"),
            f"{job.workdir}/restore.tfstate",
        ],
        "list": ["state", "list"],
        "unlock": ["force-unlock", "-force", "lock-1"],
    }


SEQUENCES = {
    "apply": (["--op=apply"], ["validate", "apply"]),
    "guarded apply": (
        ["--op=apply", "--guard-deletes"],
        ["validate", "plan saved", "show saved", "apply saved"],
    ),
    "plan": (["--op=plan"], ["validate", "plan", "show"]),
    "destroy": (["--op=destroy"], ["destroy"]),
    "refresh": (["--op=refresh"], ["refresh"]),
    "drift": (["--op=drift"], ["refresh", "plan drift", "show"]),
    "restore": (["--op=restore", "--restore-chunks=1"], ["push", "list"]),
}


@pytest.mark.parametrize("unlock", [False, True])
@pytest.mark.parametrize("case", SEQUENCES)
def test_an_operation_is_exactly_these_commands(job: Job, case, unlock):
    flags, commands = SEQUENCES[case]
    backup(job)
    job.play("plan", exit=2)
    job.play("show", plan_json(("a.b", ["update"])))
    backend = ["--backend-config=a=b", '--backend-config=l={"x"="y"}']
    outcome = job.run(*flags, *backend, *(["--force-unlock=lock-1"] if unlock else []))
    assert outcome.exit == 0
    expected = ["version", "init", *(["unlock"] if unlock else []), *commands]
    vectors = _vectors(job)
    assert [call.arguments for call in outcome.calls] == [vectors[name] for name in expected]


def backup(job: Job) -> None:
    import gzip

    (job.config / "restore").mkdir(exist_ok=True)
    (job.config / "restore" / "0").write_bytes(gzip.compress(b"{}"))


@pytest.mark.parametrize("case", ["plan", "destroy", "refresh", "drift", "restore"])
def test_guard_and_approval_change_no_other_operation(job: Job, case):
    flags, commands = SEQUENCES[case]
    backup(job)
    job.play("plan", exit=2)
    job.play("show", plan_json(("a.b", ["delete"])))
    outcome = job.run(*flags, "--guard-deletes", "--expect-plan=p2:other", "--inputs-hash=h")
    assert outcome.exit == 0
    vectors = _vectors(job)
    assert [call.arguments for call in outcome.calls[2:]] == [vectors[name] for name in commands]


def test_a_destroy_with_a_force_unlock_records_every_step(job: Job):
    outcome = job.run("--op=destroy", "--force-unlock=lock-1", "--image=r/i:v1")
    assert outcome.steps == ["init", "force-unlock", "destroy"]
    assert outcome.document["image"] == {"ref": "r/i:v1", "providersMirror": False}
    assert outcome.document["op"] == "destroy"
    assert outcome.document["error"] is None
    assert all(step["exit"] == 0 and step["seconds"] >= 0 for step in outcome.document["steps"])


@pytest.mark.parametrize(
    ("out", "exit_code"),
    [
        ("junk", 0),
        ("", 0),
        ("[]", 0),
        ('{"terraform_version":7}', 0),
        ('{"terraform_version":"1"}', 1),
    ],
)
def test_an_unknown_runtime_version_changes_nothing_else(job: Job, out, exit_code):
    job.play("version", out, exit=exit_code)
    outcome = job.run("--op=refresh")
    assert outcome.exit == 0
    assert outcome.document["runtime"]["version"] == ""
    assert "junk" not in outcome.out


def test_the_runtime_version_is_recorded_and_not_logged(job: Job):
    job.play("version", '{"terraform_version":"1.12.6"}\n{"more":1}', err="a warning")
    outcome = job.run("--op=refresh")
    assert outcome.document["runtime"]["version"] == "1.12.6"
    assert "terraform_version" not in outcome.out and "a warning" not in outcome.err


def test_drift_without_changes_reads_no_plan(job: Job):
    outcome = job.run("--op=drift")
    assert outcome.called == ["init", "apply-refresh-only", "plan"]
    assert outcome.document["drift"] == {
        "detected": False,
        "create": 0,
        "update": 0,
        "replace": 0,
        "delete": 0,
        "resources": [],
    }


def test_drift_counts_what_differs_and_succeeds(job: Job):
    job.play("plan", exit=2)
    changes = [("a.u", ["update"]), ("a.r", ["create", "delete"]), ("a.n", ["no-op"])]
    job.play("show", plan_json(*changes))
    outcome = job.run("--op=drift")
    assert outcome.exit == 0
    assert outcome.document["drift"] == {
        "detected": True,
        "create": 0,
        "update": 1,
        "replace": 1,
        "delete": 0,
        "resources": ["a.u", "a.r"],
    }
    assert outcome.document["steps"][2]["exit"] == 2
    assert "plan" not in outcome.document


def test_changed_outputs_imports_and_reads_are_no_drift(job: Job):
    job.play("plan", exit=2)
    job.play(
        "show", plan_json(("data.d.x", ["read"]), ("a.f", ["forget"]), outputs={"o": ["update"]})
    )
    assert job.run("--op=drift").document["drift"]["detected"] is False


def test_thirty_drifted_resources_are_counted_and_twenty_named(job: Job):
    job.play("plan", exit=2)
    job.play("show", plan_json(*[(f"a.b[{number}]", ["create"]) for number in range(30)]))
    drift = job.run("--op=drift").document["drift"]
    assert drift["create"] == 30
    assert drift["resources"] == [f"a.b[{number}]" for number in range(20)]


def test_a_failing_drift_plan_fails_at_plan(job: Job):
    job.play("plan", exit=1)
    outcome = job.run("--op=drift")
    assert (outcome.exit, outcome.error["step"]) == (1, "plan")
    assert outcome.document["drift"] is None


@pytest.mark.parametrize(
    "output",
    ["not json", "", "[]", '{"resource_changes":{}}', '{"resource_changes":[{"change":1}]}'],
)
@pytest.mark.parametrize("op", ["drift", "plan"])
def test_a_plan_that_cannot_be_read_fails_at_show_json(job: Job, op, output):
    job.play("plan", exit=2)
    job.play("show", output)
    outcome = job.run(f"--op={op}")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "step"
    assert outcome.error["step"] == "show-json"
    assert outcome.document["steps"][-1]["exit"] == 0


def test_the_exit_code_of_the_failing_step_is_passed_on(job: Job):
    job.play("destroy", exit=3)
    outcome = job.run("--op=destroy")
    assert outcome.exit == 3
    assert outcome.document["steps"][-1] == {
        "name": "destroy",
        "exit": 3,
        "seconds": outcome.document["steps"][-1]["seconds"],
    }


def test_an_apply_that_exits_2_is_a_failed_step_and_no_usage_error(job: Job):
    job.play("apply", exit=2)
    outcome = job.run("--op=apply")
    assert outcome.exit == 2
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", "apply")


def test_a_step_killed_by_a_signal_exits_1(job: Job):
    job.play("apply", script="kill -KILL $$")
    outcome = job.run("--op=apply")
    assert outcome.exit == 1
    assert outcome.document["steps"][-1]["exit"] == 1
    assert "SIGKILL" in outcome.error["tail"]


def test_a_failed_step_is_the_last_one(job: Job):
    job.play("validate", exit=1)
    outcome = job.run("--op=apply")
    assert outcome.steps == ["init", "validate"]
    assert outcome.called == ["init", "validate"]


MARKER = "canary-0123456789"


@pytest.mark.parametrize("case", SEQUENCES)
def test_values_of_variables_and_plans_are_never_shown(job: Job, case):
    flags, _ = SEQUENCES[case]
    backup(job)
    root = {"variable": {"password": {"sensitive": True}}}
    (job.config / "main.tf.json").write_text(json.dumps(root))
    (job.config / "terraform.tfvars.json").write_text(json.dumps({"password": MARKER}))
    job.play("plan", f"  + input = {MARKER}\n", exit=2)
    change = {"actions": ["update"], "before": {"v": MARKER}, "after": {"v": MARKER + "x"}}
    plan = {"resource_changes": [{"address": "a.b", "change": change}], "variables": {"x": MARKER}}
    job.play("show", json.dumps(plan))
    for name in ("apply", "destroy", "apply-refresh-only", "state-list", "init"):
        job.play(name, f"a.{MARKER}\n", err=f"Error: {MARKER}\n")
    outcome = job.run(*flags)
    assert outcome.exit == 0
    assert MARKER not in outcome.everything
    assert "(sensitive)" in outcome.out


def test_a_step_that_a_defect_ends_is_recorded_because_it_began(job: Job, monkeypatch):
    """The manager must know that an apply may have changed something."""

    def broken(*_):
        raise RuntimeError("a defect")

    monkeypatch.setattr("runner.ui.JsonUi.close", broken)
    outcome = job.run("--op=apply")

    assert outcome.exit == 1
    assert outcome.steps[-1] == "apply"
    assert outcome.error["step"] == "apply"

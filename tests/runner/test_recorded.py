"""What Terraform and OpenTofu really print, read alike (tests/runner/scenarios.py records it)."""

import json
import shutil
from pathlib import Path

import pytest

from tests.runner.harness import Job, Outcome
from tests.runner.scenarios import RECORDED, ROOT, SCENARIOS, SECRET, runtimes

ROLE = "module.role.terraform_data"


@pytest.fixture(params=runtimes())
def runtime(request) -> str:
    return request.param


def _replay(job: Job, runtime: str, name: str, errored_state: bool = False) -> Outcome:
    """Run the scenario's flags over the recorded output."""
    for file in (RECORDED / runtime / name).iterdir():
        target = job.path / "play" / file.name
        shutil.copy(file, target)
        if not (file.parent / f"{file.stem}.out").exists():
            target.with_suffix(".out").write_bytes(b"")
    if errored_state:
        (job.path / "play" / "apply.sh").write_text(f"echo x > {job.root}/errored.tfstate\n")
    (job.config / "main.tf.json").write_text(json.dumps(ROOT))
    (job.config / "terraform.tfvars.json").write_text(json.dumps({"secret": SECRET}))
    return job.run(*SCENARIOS[name].flags)


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_recorded_run_shows_the_secret_or_raw_messages(job: Job, runtime, name):
    outcome = _replay(job, runtime, name)
    assert SECRET not in outcome.everything
    assert '"@level"' not in outcome.out + outcome.err
    raw = [path.read_text() for path in (RECORDED / runtime / name).glob("*.*")]
    assert outcome.document["runtime"]["version"] in runtime + "-dev"
    assert raw


def test_an_apply_reports_its_counts(job: Job, runtime):
    outcome = _replay(job, runtime, "apply")
    assert outcome.exit == 0
    assert outcome.document["changes"] == {"add": 2, "change": 0, "destroy": 0}
    assert "Creation complete" in outcome.out


def test_an_apply_of_nothing_is_not_started(job: Job, runtime):
    outcome = _replay(job, runtime, "apply-nothing")
    assert outcome.called == ["init", "validate", "plan"]
    assert outcome.exit == 0


def test_a_replacement_is_blocked_and_named(job: Job, runtime):
    outcome = _replay(job, runtime, "apply-guarded")
    assert outcome.error["kind"] == "blocked"
    assert f"{ROLE}.hidden (replace)" in outcome.error["tail"]


def test_a_plan_is_summarised(job: Job, runtime):
    plan = _replay(job, runtime, "plan").document["plan"]
    assert plan.pop("hash").startswith("p2:")
    assert plan == {
        "create": 2,
        "update": 1,
        "replace": 1,
        "delete": 0,
        "outputChanges": 1,
        "move": 1,
        "resources": [
            f'{ROLE}.added["a"] (create)',
            f'{ROLE}.added["b"] (create)',
            f"{ROLE}.hidden (replace)",
            f"{ROLE}.renamed (update, move)",
        ],
    }


def test_a_forgotten_resource_is_no_deletion(job: Job, runtime):
    plan = _replay(job, runtime, "plan-forget").document["plan"]
    assert (plan["delete"], plan["forget"]) == (0, 1)
    assert f"{ROLE}.one (forget)" in plan["resources"]


def test_both_runtimes_plans_of_the_same_change_differ_in_nothing_the_summary_tells(job, tmp_path):
    summaries = []
    for number, runtime in enumerate(runtimes()):
        directory = tmp_path / str(number)
        directory.mkdir()
        plan = _replay(Job(directory), runtime, "plan").document["plan"]
        del plan["hash"]  # holds the identifiers of two different runs
        summaries.append(plan)
    assert len(summaries) == 2
    assert summaries[0] == summaries[1]


def test_drift_is_counted(job: Job, runtime):
    drift = _replay(job, runtime, "drift").document["drift"]
    assert drift["detected"] is True
    assert (drift["create"], drift["update"], drift["replace"], drift["delete"]) == (2, 1, 1, 0)


def test_a_destroy_reports_its_counts(job: Job, runtime):
    outcome = _replay(job, runtime, "destroy")
    assert outcome.document["changes"] == {"add": 0, "change": 0, "destroy": 2}


def test_a_failed_provisioner_names_its_resource(job: Job, runtime):
    outcome = _replay(job, runtime, "failed-provisioner")
    assert outcome.exit == 1
    assert outcome.error["resources"] == [f"{ROLE}.bad: local-exec provisioner error"]
    assert outcome.error["tail"].startswith(
        f"Error: local-exec provisioner error in {ROLE}.bad (module/main.tf:5): "
    )
    assert f"with {ROLE}.bad" in outcome.err
    assert "to standard output" in outcome.out


def test_a_failed_postcondition_names_its_resource(job: Job, runtime):
    outcome = _replay(job, runtime, "failed-postcondition")
    # The runtimes give no address here, only the source; both instances are that one resource.
    assert outcome.error["resources"] == ["terraform_data.checked: Resource postcondition failed"]
    assert "The value is not the other one." in outcome.error["tail"]
    assert "Second line" not in outcome.error["tail"]


def test_a_failure_in_json_syntax_without_an_address_names_no_resource(job: Job, runtime):
    outcome = _replay(job, runtime, "failed-precondition-json")
    assert "resources" not in outcome.error
    assert "Never true." in outcome.error["tail"]


def test_a_failed_validation_names_its_errors(job: Job, runtime):
    outcome = _replay(job, runtime, "failed-validation")
    assert outcome.error["step"] == "validate"
    lines = outcome.error["tail"].splitlines()
    assert any("no_such_argument" in line for line in lines)
    assert any("no_such_variable" in line for line in lines)
    assert all(line.startswith("Error: ") for line in lines)


def test_a_failed_init_is_summarised_from_standard_error(job: Job, runtime):
    outcome = _replay(job, runtime, "failed-init")
    assert outcome.error["step"] == "init"
    assert outcome.error["tail"].splitlines() == [
        "Error: Unreadable module directory: Unable to evaluate directory symlink: "
        "lstat ../../module/missing: no such file or directory",
        "Error: Unreadable module directory: "
        'The directory could not be read for module "missing" at ../../module/main.tf:1.',
    ]


def test_a_lock_already_cleared_is_no_failure(job: Job, runtime):
    outcome = _replay(job, runtime, "cleared-lock")
    assert outcome.exit == 0
    assert outcome.document["steps"][1]["exit"] == 1


def test_a_foreign_lock_is_left_to_the_next_step(job: Job, runtime):
    outcome = _replay(job, runtime, "foreign-lock")
    assert outcome.document["steps"][1] == {
        **outcome.document["steps"][1],
        "name": "force-unlock",
        "exit": 1,
    }
    assert outcome.error["step"] == "apply-refresh-only"
    client = "tofu" if "tofu" in runtime else "terraform"
    assert outcome.error["tail"] == (
        "Error: Error acquiring the state lock: Error message: the state is already locked by "
        f"another {client} client"
    )


def test_a_lock_that_cannot_be_cleared_is_a_failure(job: Job, runtime):
    assert _replay(job, runtime, "failed-unlock").error["step"] == "force-unlock"


def test_an_interrupted_apply_names_what_it_was_doing(job: Job, runtime):
    outcome = _replay(job, runtime, "interrupted")
    assert f"{ROLE}.slow: local-exec provisioner error" in outcome.error["resources"]
    assert "Error: execution halted" in outcome.error["tail"]


def test_a_state_that_could_not_be_stored_is_pushed(job: Job, runtime):
    outcome = _replay(job, runtime, "unsaved-state", errored_state=True)
    assert outcome.steps[-2:] == ["apply", "state-push"]
    assert outcome.error["tail"].startswith("Error: Failed to save state")


def test_every_scenario_is_recorded_for_both_runtimes():
    products = {name.partition("-")[0] for name in runtimes()}
    assert products == {"terraform", "opentofu"}
    for runtime in runtimes():
        recorded = {path.name for path in (RECORDED / runtime).iterdir() if path.is_dir()}
        assert recorded == set(SCENARIOS)
        assert all(isinstance(path, Path) for path in (RECORDED / runtime).iterdir())

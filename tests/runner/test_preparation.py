"""Preflight, the work directory and the environment of the steps (runner.md: Preflight;
runner.md: The work directory)."""

import json
import os
import stat

import pytest

from tests.runner.harness import Job


def _empty(directory):
    for entry in directory.iterdir():
        entry.unlink()


@pytest.mark.parametrize("case", ["missing", "only a readme", "only a directory named x.tf"])
def test_a_module_directory_without_module_files_breaks_the_contract(job: Job, case):
    _empty(job.module)
    if case == "missing":
        job.module.rmdir()
    elif case == "only a readme":
        (job.module / "README.md").write_text("")
    else:
        (job.module / "x.tf").mkdir()
    outcome = job.run("--op=apply")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "image-layout"
    assert outcome.error["step"] is None
    assert str(job.module) in outcome.error["tail"]
    assert outcome.document["steps"] == []
    assert outcome.calls == []


@pytest.mark.parametrize("name", ["x.tf", "x.tf.json", "x.tofu", "x.tofu.json", ".tf"])
def test_one_module_file_of_any_kind_is_enough(job: Job, name):
    _empty(job.module)
    (job.module / name).write_text("")
    assert job.run("--op=refresh").exit == 0


def test_a_symlink_counts_as_a_module_file(job: Job):
    _empty(job.module)
    (job.module / "x.tf").symlink_to("/nonexistent")
    assert job.run("--op=refresh").exit == 0


def test_a_runtime_found_on_the_path_passes(job: Job):
    outcome = job.run("--op=refresh", "--bin=sh", "--bin=-c", "--bin=exit 0")
    assert outcome.document["runtime"]["command"][-3:] == ["sh", "-c", "exit 0"]
    arguments = [flag for flag in job.flags("--op=refresh") if not flag.startswith("--bin")]
    outcome = job.run_arguments([*arguments, "--bin=sh", "--bin=-c", "--bin=exit 0"])
    assert outcome.exit == 0


@pytest.mark.parametrize("case", ["not executable", "directory", "missing", "unknown", "empty"])
def test_a_runtime_that_cannot_be_started_breaks_the_contract(job: Job, case):
    runtime = job.path / "runtime"
    if case == "not executable":
        runtime.write_text("")
        runtime.chmod(0o644)
    elif case == "directory":
        runtime.mkdir()
    name = {"unknown": "no-such-runtime", "empty": ""}.get(case, str(runtime))
    arguments = [flag for flag in job.flags("--op=apply") if not flag.startswith("--bin")]
    outcome = job.run_arguments([*arguments, f"--bin={name}"])
    assert outcome.exit == 1
    assert outcome.error["kind"] == "image-layout"
    assert name in outcome.error["tail"]


def test_the_config_mount_is_copied_as_the_kubelet_lays_it_out(job: Job):
    for entry in job.config.iterdir():
        entry.unlink()
    data = job.config / "..2024_01_01_00_00_00.1"
    data.mkdir()
    for name in ("main.tf.json", "terraform.tfvars.json"):
        (data / name).write_text('{"a":1}')
        (job.config / name).symlink_to(f"..data/{name}")
    (job.config / "..data").symlink_to(data.name)
    (job.config / "restore").mkdir()
    (job.config / "restore" / "0").write_bytes(b"chunk")
    (job.config / "dangling").symlink_to("nowhere")
    assert job.run("--op=refresh").exit == 0
    assert sorted(entry.name for entry in job.root.iterdir()) == [
        "main.tf.json",
        "terraform.tfvars.json",
    ]
    for entry in job.root.iterdir():
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600
        assert entry.read_text() == '{"a":1}'
    assert stat.S_IMODE(job.root.stat().st_mode) == 0o700


def test_preparing_again_over_an_older_run_replaces_the_files(job: Job):
    job.run("--op=refresh")
    (job.config / "main.tf.json").write_text('{"new":true}')
    job.run("--op=refresh")
    assert (job.root / "main.tf.json").read_text() == '{"new":true}'


def test_a_missing_config_directory_fails_the_preparation(job: Job):
    outcome = job.run("--op=apply", "--config=/nonexistent/config")
    assert outcome.exit == 1
    assert outcome.error["kind"] == "step"
    assert outcome.error["step"] == "prepare"
    assert "/nonexistent/config" in outcome.error["tail"]
    assert outcome.calls == []


def test_a_work_directory_that_cannot_be_made_fails_the_preparation(job: Job):
    (job.path / "file").write_text("")
    outcome = job.run("--op=apply", f"--workdir={job.path / 'file' / 'work'}")
    assert (outcome.exit, outcome.error["step"]) == (1, "prepare")


DROPPED = {
    "TF_WORKSPACE": "other",
    "TF_LOG": "TRACE",
    "TF_VAR_x": "injected",
    "TF_CLI_ARGS_apply": "-destroy",
    "KUBE_TOKEN": "stolen",
    "TF_DATA_DIR": "/elsewhere",
    "TF_CLI_CONFIG_FILE": "/nonexistent.tfrc",
    "TERRAFORM_CONFIG": "/elsewhere.tfrc",
    "XDG_DATA_DIRS": "/plugins",
}
KEPT = {"KUBERNETES_SERVICE_PORT": "443", "TFX": "1", "TF_INPUT": "0", "KUBE_NAMESPACE": "default"}


def test_inherited_variables_that_change_the_runtime_are_taken_away(job: Job):
    outcomes = []
    environment = job.environment_of(
        "init",
        lambda: outcomes.append(
            job.run("--op=refresh", environ={**job.environ, **DROPPED, **KEPT})
        ),
    )
    assert not set(DROPPED) - {"TF_DATA_DIR"} & set(environment)
    assert environment["TF_DATA_DIR"] == f"{job.workdir}/.terraform"
    assert environment["HOME"] == str(job.workdir)
    assert environment["TF_IN_AUTOMATION"] == "1"
    assert KEPT.items() <= environment.items()
    lines = [line for line in outcomes[0].err.splitlines() if "vars=" in line]
    assert len(lines) == 1
    assert json.loads(lines[0].partition("vars=")[2]) == sorted(DROPPED)
    assert not any(value in lines[0] for value in ("TRACE", "injected", "stolen", "-destroy"))


def test_the_default_environment_of_a_job_drops_nothing_and_logs_no_such_line(job: Job):
    outcome = job.run("--op=refresh")
    assert "vars=" not in outcome.err


def test_without_a_directory_for_temporary_files_the_runner_makes_one(job: Job):
    del job.environ["TMPDIR"]
    environment = job.environment_of("init", lambda: job.run("--op=refresh"))
    assert environment["TMPDIR"] == f"{job.workdir}/tmp"
    assert stat.S_IMODE((job.workdir / "tmp").stat().st_mode) == 0o700


def test_an_inherited_directory_for_temporary_files_is_kept(job: Job):
    environment = job.environment_of("init", lambda: job.run("--op=refresh"))
    assert environment["TMPDIR"] == str(job.tmp)
    assert not (job.workdir / "tmp").exists()


def test_a_provider_mirror_is_the_only_place_providers_come_from(job: Job):
    (job.path / "providers").mkdir()
    outcomes = []
    environment = job.environment_of("init", lambda: outcomes.append(job.run("--op=refresh")))
    setting = job.workdir / "cli.tfrc"
    assert environment["TF_CLI_CONFIG_FILE"] == str(setting)
    assert stat.S_IMODE(setting.stat().st_mode) == 0o600
    words = setting.read_text().split()
    assert words == [
        *("provider_installation", "{", "filesystem_mirror", "{"),
        *("path", "=", json.dumps(str(job.path / "providers"))),
        *("include", "=", '["*/*/*"]', "}"),
        *("direct", "{", "exclude", "=", '["*/*/*"]', "}", "}"),
    ]
    assert outcomes[0].document["image"]["providersMirror"] is True


def test_a_file_in_the_mirrors_place_means_no_mirror(job: Job):
    (job.path / "providers").write_text("")
    environment = job.environment_of("init", lambda: job.run("--op=refresh"))
    assert "TF_CLI_CONFIG_FILE" not in environment
    assert not (job.workdir / "cli.tfrc").exists()


def test_steps_run_in_the_root_module_with_nothing_on_standard_input(job: Job):
    seen = job.marker("seen")
    script = f"cat > {seen}; pwd >> {seen}; ls /proc/self/fd | wc -l >> {seen}"
    job.play("init", script=script)
    descriptor = os.open("/", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        assert job.start("--op=refresh").end().exit == 0
    finally:
        os.close(descriptor)
    directory, descriptors = seen.read_text().split()
    assert directory == str(job.root)
    assert int(descriptors) <= 4  # 0, 1, 2 and the listing's own

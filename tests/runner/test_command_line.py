"""Commands, global flags, flag rules, exit codes and the result of bad flags
(runner.md: Commands)."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from captfctl.version import VERSION
from runner import run_options
from runner.flags import FlagSet
from tests.runner.harness import FAKE_RUNTIME, REPOSITORY, Job, invoke


def _call(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    exit_code, out, err = invoke(list(arguments), {}, tmp_path)
    return exit_code, out.decode(), err.decode()


def _parsed(*arguments: str) -> run_options.RunOptions:
    accepted = FlagSet(run_options.RUN_FLAGS)
    values = accepted.defaults()
    accepted.parse(arguments, values)
    return run_options.run_options(values)


def test_a_bare_runner_prints_its_usage_to_standard_error_and_exits_2(tmp_path):
    exit_code, out, err = _call(tmp_path)
    assert (exit_code, out) == (2, "")
    assert "Usage:" in err


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "-h"], ["copy", "--help"]])
def test_help_goes_to_standard_output(tmp_path, arguments):
    exit_code, out, err = _call(tmp_path, *arguments)
    assert (exit_code, err) == (0, "")
    assert "Usage:" in out


def test_help_of_run_names_every_flag_and_writes_no_result(job: Job):
    outcome = job.run("-h")
    assert outcome.exit == 0
    assert outcome.result is None
    for flag in run_options.RUN_FLAGS:
        assert f"--{flag.name}" in outcome.out


def test_an_unknown_command_is_named_and_exits_2(tmp_path):
    exit_code, out, err = _call(tmp_path, "bogus")
    assert (exit_code, out) == (2, "")
    assert err.startswith("runner: ") and "bogus" in err.partition("\n")[0]
    assert "\n\nUsage:" in err


def test_arguments_of_version_are_named_and_exit_2(tmp_path):
    exit_code, out, err = _call(tmp_path, "version", "x")
    assert (exit_code, out) == (2, "")
    assert err == "runner version: unexpected arguments: x\n"


@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["--version=true"]])
def test_version_prints_name_and_version(tmp_path, arguments):
    assert _call(tmp_path, *arguments) == (0, f"runner v{VERSION}\n", "")


def test_raw_version_is_one_line_of_build_information(tmp_path):
    exit_code, out, _ = _call(tmp_path, "--version=raw")
    assert exit_code == 0
    assert out.count("\n") == 1
    facts = json.loads(out)
    assert facts["version"] == f"v{VERSION}"
    assert {"gitCommit", "gitTreeState", "buildDate", "pythonVersion", "platform"} <= set(facts)


def test_version_beside_a_command_prints_and_does_not_run_it(job: Job):
    outcome = job.run("--op=apply", "--version")
    assert (outcome.exit, outcome.out) == (0, f"runner v{VERSION}\n")
    assert outcome.result is None
    assert outcome.calls == []


def test_the_reported_version_can_get_another_suffix_only(tmp_path):
    assert (
        _call(tmp_path, f"--version=v{VERSION}-mine", "version")[1] == f"runner v{VERSION}-mine\n"
    )
    exit_code, _, err = _call(tmp_path, "--version=v99.0.0", "version")
    assert exit_code == 2
    assert "v99.0.0" in err


def test_a_reported_version_alone_prints_the_usage(tmp_path):
    exit_code, _, err = _call(tmp_path, f"--version=v{VERSION}")
    assert exit_code == 2
    assert "Usage:" in err


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_copy_wants_exactly_one_destination(tmp_path, arguments):
    exit_code, _, err = _call(tmp_path, "copy", *arguments)
    assert exit_code == 2
    assert err.startswith("runner copy: ") and err.count("\n") == 1


def _archive(tmp_path: Path) -> Path:
    """The runner as one file: a zip archive with an interpreter line."""
    import zipapp

    archive = tmp_path / "runner.pyz"
    source = tmp_path / "source"
    (source / "runner").mkdir(parents=True)
    for file in (REPOSITORY / "runner").glob("*.py"):
        (source / "runner" / file.name).write_bytes(file.read_bytes())
    start = "import sys\nfrom runner.__main__ import main\nsys.exit(main())\n"
    (source / "__main__.py").write_text(start)
    zipapp.create_archive(source, archive, sys.executable)
    return archive


def test_copy_puts_identical_bytes_with_mode_0755_at_the_destination(tmp_path):
    archive = _archive(tmp_path)
    destination = tmp_path / "copied"
    destination.write_text("an older one")
    destination.chmod(0o600)
    done = subprocess.run([archive, "copy", destination], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert destination.read_bytes() == archive.read_bytes()
    assert stat.S_IMODE(destination.stat().st_mode) == 0o755


def test_copy_onto_itself_leaves_the_program_whole(tmp_path):
    archive = _archive(tmp_path)
    before = archive.read_bytes()
    done = subprocess.run([archive, "copy", archive], capture_output=True, check=False)
    assert done.returncode == 1
    assert archive.read_bytes() == before


def test_copy_into_a_missing_directory_exits_1(tmp_path):
    archive = _archive(tmp_path)
    command = [archive, "copy", "/nonexistent/d/r"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("runner copy: /nonexistent/d/r: ")


def test_copy_from_a_package_says_that_there_is_no_single_file(tmp_path):
    command = [sys.executable, "-m", "runner", "copy", str(tmp_path / "r")]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=REPOSITORY)
    assert done.returncode == 1
    assert "runner-binary" in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_flag_error_is_written_to_the_result_named_before_it(tmp_path):
    result = tmp_path / "R"
    exit_code, _, err = _call(tmp_path, "run", f"--result={result}", "--bogus")
    assert exit_code == 2
    assert err == "runner run: unknown flag: --bogus\n"
    assert json.loads(result.read_text()) == {
        "version": 1,
        "op": "",
        "image": {"ref": "", "providersMirror": False},
        "runtime": {"command": [], "version": ""},
        "steps": [],
        "drift": None,
        "error": {"kind": "step", "step": "flags", "tail": "unknown flag: --bogus"},
    }


def test_a_result_named_after_the_bad_flag_is_not_used(tmp_path, monkeypatch):
    default = tmp_path / "termination-log"
    result = tmp_path / "R"
    flags = tuple(
        flag._replace(default=str(default)) if flag.name == "result" else flag
        for flag in run_options.RUN_FLAGS
    )
    monkeypatch.setattr("runner.run_options.RUN_FLAGS", flags)
    assert _call(tmp_path, "run", "--bogus", f"--result={result}")[0] == 2
    assert not result.exists()
    assert json.loads(default.read_text())["error"]["step"] == "flags"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--op=bogus"], "bogus"),
        ([], "--op"),
        (["--op=Apply"], "Apply"),
        (["--op=apply", "extra"], "extra"),
        (["--op=apply", "--", "--extra"], "--extra"),
        (["--op=apply", "--logging-format=bogus"], "Unsupported log format"),
        (["--op=apply", "--lock-timeout=300"], "--lock-timeout"),
        (["--op=apply", "--restore-chunks=many"], "--restore-chunks"),
        (["--op=apply", "--guard-deletes=maybe"], "--guard-deletes"),
        (["--op=apply", "--job-name"], "--job-name"),
        (["--op=apply", "--log-json-split-stream"], "LoggingAlphaOptions"),
        (["--op=apply", "--logging-format=json", "--vmodule=run=4"], "--vmodule"),
    ],
)
def test_bad_input_to_run_exits_2_with_a_flags_result_and_no_events(job: Job, flags, told):
    outcome = job.run("--event-object=v1/Pod/ns/n/uid", *flags)
    assert outcome.exit == 2
    assert outcome.err.startswith("runner run: ") and outcome.err.count("\n") == 1
    assert told in outcome.err
    assert outcome.error["kind"] == "step"
    assert outcome.error["step"] == "flags"
    assert told in outcome.error["tail"]
    assert outcome.document["op"] == ""
    assert outcome.calls == []


def test_logging_flags_are_refused_with_a_prefix_and_without_usage(tmp_path):
    exit_code, _, err = _call(tmp_path, "--logging-format=xml", "version")
    assert exit_code == 2
    assert err.startswith("runner version: logging flags: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--v=x", "version"], ["version", "--v=x"], ["copy", "--y"]])
def test_a_bad_flag_outside_run_prints_the_usage_after_a_blank_line(tmp_path, arguments):
    exit_code, out, err = _call(tmp_path, *arguments)
    assert (exit_code, out) == (2, "")
    assert "\n\nUsage:" in err


def test_global_flags_stand_before_or_after_the_command(job: Job):
    for arguments in (["-v", "3", *job.flags("--op=refresh")], job.flags("--op=refresh", "-v=3")):
        outcome = job.run_arguments(arguments)
        assert outcome.exit == 0


def test_flags_of_run_before_the_command_are_refused(job: Job):
    assert job.run_arguments(["--op=apply", *job.flags()]).exit == 2


def test_array_flags_keep_every_element_whole():
    parsed = _parsed(
        "--op=apply",
        "--bin=/opt/w",
        "--bin=tofu",
        "--backend-config=a=b",
        '--backend-config=labels={"x"="y","z"=""}',
    )
    assert parsed.bin == ("/opt/w", "tofu")
    assert parsed.backend_config == ("a=b", 'labels={"x"="y","z"=""}')


def test_a_scalar_given_twice_keeps_the_last_value_and_takes_it_from_the_next_argument():
    parsed = _parsed("--op=plan", "--image", "a", "--image=b", "--op", "apply")
    assert (parsed.op, parsed.image) == ("apply", "b")


@pytest.mark.parametrize("spelling", ["1", "t", "T", "TRUE", "true", "True"])
def test_every_spelling_of_true_is_taken(spelling):
    assert _parsed(f"--guard-deletes={spelling}").guard_deletes is True
    assert _parsed("--guard-deletes", "--guard-deletes=F").guard_deletes is False


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("0x10", 16), ("0b11", 3), ("-2", -2)])
def test_integers_are_decimal_or_prefixed(text, value):
    assert _parsed(f"--restore-chunks={text}").restore_chunks == value


@pytest.mark.parametrize(
    ("flag", "shown"), [("90s", "90s"), ("1m30.9s", "90s"), ("500ms", "0s"), ("0", "0s")]
)
def test_the_lock_timeout_is_passed_in_whole_seconds(job: Job, flag, shown):
    outcome = job.run("--op=refresh", f"--lock-timeout={flag}")
    assert f"-lock-timeout={shown}" in outcome.calls[1].arguments


def test_the_defaults_are_those_of_the_table():
    assert _parsed("--op=apply") == run_options.RunOptions(
        op="apply",
        bin=("/captf/runtime",),
        image="",
        module="/captf/module",
        providers="/captf/providers",
        workdir="/captf/work",
        config="/captf/config",
        backend_config=(),
        lock_timeout=300 * 10**9,
        stop_timeout=60 * 10**9,
        force_unlock="",
        guard_deletes=False,
        inputs_hash="",
        allow_deletes_hash="",
        expect_plan="",
        plan_key_file="/captf/plan-key/key",
        restore_chunks=0,
        restore_resources=0,
        unsaved_chunks=0,
        event_object="",
        job_name="",
        result="/dev/termination-log",
    )


def test_an_empty_result_path_means_the_default():
    assert _parsed("--op=apply", "--result=").result == "/dev/termination-log"


def test_a_result_that_cannot_be_written_turns_success_into_1_and_leaves_other_codes(job: Job):
    outcome = job.run("--op=refresh", "--result=/nonexistent/x")
    assert outcome.exit == 1
    assert "/nonexistent/x" in outcome.err
    job.play("init", exit=7)
    assert job.run("--op=refresh", "--result=/nonexistent/x").exit == 7


def test_flags_of_other_operations_are_accepted_and_change_nothing(job: Job):
    plain = job.run("--op=destroy").calls
    guarded = job.run(
        "--op=destroy", "--guard-deletes", "--expect-plan=p2:x", "--restore-chunks=3"
    ).calls
    assert guarded[len(plain) :] == plain


def test_relative_paths_are_taken_from_where_the_runner_was_started(job: Job, monkeypatch):
    monkeypatch.chdir(job.path)
    arguments = ["run", "--op=refresh", f"--bin={os.path.relpath(FAKE_RUNTIME)}", "--bin=play"]
    arguments[3] = f"--bin={job.path / 'play'}"
    for name in ("module", "config", "workdir", "result"):
        path = {"workdir": "work", "result": "result.json"}.get(name, name)
        arguments.append(f"--{name}={path}")
    outcome = job.run_arguments(arguments)
    assert outcome.exit == 0
    assert outcome.steps == ["init", "apply-refresh-only"]


def test_the_runner_needs_the_standard_library_only():
    imported = set()
    for file in (REPOSITORY / "runner").glob("*.py"):
        for line in file.read_text().splitlines():
            if match := re.match(r"\s*(?:from|import) ([a-z0-9_]+)", line):
                imported.add(match[1])
    assert imported <= set(sys.stdlib_module_names) | {"runner"}

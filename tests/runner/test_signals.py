"""Signals, time limits, and that nothing survives a step (runner.md: Running a step)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner import wire
from tests.runner.harness import REPOSITORY, Job, alive, wait_until

FOREVER = "while :; do sleep 0.02; done"


def _trapping(job: Job, reaction: str) -> str:
    """A script that says it is there and reacts to SIGTERM."""
    return f"trap '{reaction}' TERM; : > {job.marker('there')}; {FOREVER}"


def _stopped(job: Job, *flags: str, number: signal.Signals = signal.SIGTERM):
    started = job.start(*flags)
    wait_until(job.marker("there").exists, "the step")
    started.signal(number)
    return started.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_init_interrupts_the_run(job: Job, number):
    job.play("init", script=_trapping(job, "exit 1"))
    outcome = _stopped(job, "--op=apply", number=number)
    assert outcome.exit == 1
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "init")
    assert outcome.called == ["init"]
    assert outcome.document["steps"][0]["exit"] == 1


@pytest.mark.parametrize("op", ["apply", "destroy"])
def test_a_signal_before_the_runner_is_there_still_makes_a_result(job: Job, op):
    """It was held back while the interpreter started; no step has begun."""

    def before_exec() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)

    command = [sys.executable, "-m", "runner", *job.flags(f"--op={op}")]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=job.environ,
        preexec_fn=before_exec,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    result = wire.decode(job.result.read_text())
    assert result.error_kind == wire.INTERRUPTED
    assert not result.has_step(op)
    assert [call.name for call in job.calls()] in ([], ["version"])


def test_a_last_step_that_still_succeeds_makes_the_run_succeed(job: Job):
    job.play("destroy", script=_trapping(job, "exit 0"))
    outcome = _stopped(job, "--op=destroy")
    assert outcome.exit == 0
    assert outcome.document["error"] is None


def test_the_step_after_one_that_still_succeeds_is_not_started(job: Job):
    job.play("init", script=_trapping(job, "exit 0"))
    outcome = _stopped(job, "--op=destroy")
    assert outcome.exit == 1
    assert outcome.called == ["init"]
    assert outcome.document["steps"][1] == {"name": "destroy", "exit": 1, "seconds": 0.0}
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "destroy")


def test_a_runtime_that_ignores_the_signal_is_killed_after_the_stop_timeout(job: Job):
    job.play("init", script=_trapping(job, ""))
    outcome = _stopped(job, "--op=refresh", "--stop-timeout=200ms")
    assert outcome.exit == 1
    assert outcome.document["steps"][0]["exit"] == 1
    assert outcome.error["kind"] == "interrupted"
    assert "SIGKILL" in outcome.error["tail"]


def test_a_runtime_that_takes_its_time_keeps_its_own_exit_code(job: Job):
    job.play("init", script=_trapping(job, "sleep 0.3; exit 3"))
    outcome = _stopped(job, "--op=refresh", "--stop-timeout=10s")
    assert outcome.exit == 3
    assert outcome.document["steps"][0]["exit"] == 3
    assert outcome.error["kind"] == "interrupted"


def test_a_stop_timeout_of_zero_means_a_minute(job: Job):
    job.play("init", script=_trapping(job, "sleep 0.3; exit 4"))
    assert _stopped(job, "--op=refresh", "--stop-timeout=0").exit == 4


def test_a_step_that_fails_by_itself_is_not_interrupted(job: Job):
    job.play("init", exit=1)
    assert job.run("--op=refresh").error["kind"] == "step"


def test_a_grandchild_that_holds_the_output_does_not_fail_the_step(job: Job):
    pid = job.marker("pid")
    job.play("init", script=f"sleep 600 & echo $! > {pid}; echo done; exit 0")
    started = time.monotonic()
    outcome = job.start("--op=refresh", "--stop-timeout=300ms").end()
    assert outcome.exit == 0
    assert "done" in outcome.out
    assert time.monotonic() - started < 20
    assert not alive(int(pid.read_text()))


def test_the_signal_reaches_the_runtime_and_not_its_children(job: Job):
    told = job.marker("told")
    child = f"trap ': > {told}; exit' TERM; : > {job.marker('there')}; {FOREVER}"
    reaction = "sleep 0.2; exit 1"
    job.play(
        "init",
        script=f"trap '{reaction}' TERM; (exec sh -c \"{child}\") >/dev/null 2>&1 & wait; wait",
    )
    assert _stopped(job, "--op=refresh").exit == 1
    assert not told.exists()


def test_a_second_signal_changes_nothing(job: Job):
    count = job.marker("count")
    job.play("init", script=_trapping(job, f"echo x >> {count}; sleep 0.3; exit 1"))
    started = job.start("--op=refresh")
    wait_until(job.marker("there").exists, "the step")
    started.signal()
    wait_until(count.exists, "the signal")
    started.signal()
    started.signal(signal.SIGINT)
    outcome = started.end()
    assert outcome.error["kind"] == "interrupted"
    assert count.read_text() == "x\n"


def test_a_signal_right_at_the_start_is_not_lost(job: Job):
    started = job.start("--op=refresh")
    wait_until(lambda: _catches(started.process.pid), "the handlers")
    started.signal()
    outcome = started.end()
    assert outcome.exit == 1
    assert outcome.error["kind"] == "interrupted"


def _catches(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def test_a_binary_that_vanished_after_the_preflight_fails_its_step(job: Job):
    runtime = job.path / "vanishing"
    runtime.write_text('#!/bin/sh\n[ "$1" = version ] && rm "$0"\nexit 0\n')
    runtime.chmod(0o755)
    arguments = [flag for flag in job.flags("--op=refresh") if not flag.startswith("--bin")]
    outcome = job.run_arguments([*arguments, f"--bin={runtime}"])
    assert outcome.exit == 1
    (step,) = outcome.document["steps"]
    assert (step["name"], step["exit"]) == ("init", 1)
    assert (outcome.error["kind"], outcome.error["step"]) == ("step", "init")
    assert "No such file" in outcome.error["tail"]


def test_a_file_the_system_cannot_execute_fails_its_step(job: Job):
    runtime = job.path / "garbage"
    runtime.write_bytes(b"\x7fELFgarbage")
    runtime.chmod(0o755)
    arguments = [flag for flag in job.flags("--op=refresh") if not flag.startswith("--bin")]
    outcome = job.run_arguments([*arguments, f"--bin={runtime}"])
    assert (outcome.exit, outcome.error["step"]) == (1, "init")
    assert str(runtime) in outcome.error["tail"]


def test_descendants_in_sessions_of_their_own_do_not_survive_the_step(job: Job):
    pids = job.marker("pids")
    escape = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 600' >/dev/null 2>&1 &"
    job.play(
        "init", script=f'({escape})\n({escape})\nwhile [ "$(wc -l < {pids})" != 2 ]; do :; done'
    )
    job.play("apply-refresh-only", script=f"xargs ps -o stat= -p < {pids} > {job.marker('left')}")
    outcome = job.start("--op=refresh").end()
    assert outcome.exit == 0
    assert not any(alive(int(pid)) for pid in pids.read_text().split())
    assert job.marker("left").read_text().replace("Z", "").split() == []


def test_children_the_runner_was_started_with_are_left_alone(job: Job):
    pid = job.marker("pid")
    command = f'sleep 600 & echo $! > {pid}; exec "$@"'
    arguments = [sys.executable, "-m", "runner", *job.flags("--op=refresh")]
    done = subprocess.run(
        ["sh", "-c", command, "sh", *arguments],
        cwd=REPOSITORY,
        env=job.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0
    sleeping = int(pid.read_text())
    assert alive(sleeping)
    os.kill(sleeping, signal.SIGKILL)


def test_a_log_that_nobody_reads_does_not_keep_the_runner_from_stopping(job: Job):
    there = job.marker("there")
    job.play("init", script=f"trap '' TERM; : > {there}; while :; do echo {'x' * 200}; done")
    reading, writing = os.pipe()
    runner = subprocess.Popen(
        [sys.executable, "-m", "runner", *job.flags("--op=refresh", "--stop-timeout=200ms")],
        cwd=REPOSITORY,
        env=job.environ,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        wait_until(there.exists, "the step")
        time.sleep(0.1)  # until the pipe is full
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(30) == 1
    finally:
        os.close(reading)
    assert job.result.exists()


def _can_unshare() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _can_unshare(), reason="needs user and PID namespaces (unshare)")
def test_as_the_first_process_of_a_container_it_stops_and_leaves_nothing(job: Job):
    there = job.marker("there")
    job.play("init", script=f"(setsid sleep 600 >/dev/null 2>&1 &); {_trapping(job, 'exit 1')}")
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    outside = subprocess.Popen(
        [*unshare, sys.executable, "-m", "runner", *job.flags("--op=refresh")],
        cwd=REPOSITORY,
        env=job.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(there.exists, "the step")
        children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)
        outside.wait(30)
    finally:
        outside.kill()
        outside.wait()
    outcome = job._outcome(1, b"", b"")
    assert (outcome.error["kind"], outcome.error["step"]) == ("interrupted", "init")

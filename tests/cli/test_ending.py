"""What a command says at its end of the runs that it had."""

import subprocess
import sys

import pytest

from captfctl.cli import ending
from captfctl.model import keys
from captfctl.model.core import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodStatus,
)
from captfctl.model.meta import ObjectMeta
from runner import wire


def pod(phase, state=None, *, namespace="default", job="captf-c-a-apply-a1-0"):
    labels = {keys.JOB_NAME: job} if job else {}
    statuses = [ContainerStatus(name="source", state=state)] if state else []
    return Pod(
        metadata=ObjectMeta(name="p", namespace=namespace, labels=labels),
        status=PodStatus(phase=phase, container_statuses=statuses),
    )


def ended(error=None, *, reason="Error", code=1):
    message = wire.encode(wire.RunResult(op="apply", error=error)).decode() if error else ""
    return ContainerState(
        terminated=ContainerStateTerminated(exit_code=code, reason=reason, message=message)
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (pod("Succeeded", ended()), "was done before it was stopped"),
        (
            pod("Failed", ended(wire.Failure(kind=wire.INTERRUPTED, step="apply"))),
            "stopped in order in step apply",
        ),
        (
            pod("Failed", ended(wire.Failure(kind=wire.STEP, tail="Error: no such zone\nmore"))),
            "failed: no such zone",
        ),
        (pod("Failed", ended(code=137)), "ended without a result: Error, exit code 137"),
        (pod("Failed"), "ended without a result"),
        (pod("Pending"), "had not begun"),
        (
            pod("Running", ContainerState(running=ContainerStateRunning())),
            "still runs: the next captfctl command",
        ),
    ],
    ids=["done", "in order", "failed", "killed", "no container", "not begun", "left"],
)
def test_the_end_of_each_run_is_told(found, said):
    assert said in ending.fate(found)


def test_runs_are_named_as_kubectl_names_them():
    pods = [pod("Running"), pod("Running", namespace="team", job=""), pod("Running", job="x")]
    assert ending.names(pods) == "job/captf-c-a-apply-a1-0, pod/team/p, job/x"


SIGNALLED_TWICE = """
import hashlib, os, signal, threading
from captfctl.cli.signals import end_requested
ending, held = end_requested(), threading.Lock()
def left():
    {left}
ending.left = left
os.kill(os.getpid(), signal.SIGINT)
with held:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    {meanwhile}
"""


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("return 'job/a goes on'", "job/a goes on"),
        ("with held: return 'job/a goes on'", "taken over by the next captfctl command"),
        ("raise OSError('no server')", "taken over by the next captfctl command"),
    ],
    ids=["known", "its lock is held by what was interrupted", "cannot be told"],
)
@pytest.mark.parametrize(
    "meanwhile",
    [
        "threading.Event().wait()",
        # A signal does not end it, and until it ends Python runs no handler.
        "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",
    ],
    ids=["waits", "is in one long call"],
)
def test_a_second_signal_ends_at_once_and_says_what_is_left(left, said, meanwhile):
    script = SIGNALLED_TWICE.format(left=left, meanwhile=meanwhile)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "ended at once: " in done.stderr
    assert said in done.stderr


FIRST_SIGNAL = """
import os, signal, sys
from captfctl.cli.signals import end_requested
ending = end_requested()
ending.check()
os.kill(os.getpid(), signal.Signals[sys.argv[1]])
print("goes on")
ending.wait(20)
ending.check()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_the_first_signal_lets_a_command_end_in_order_with_the_code_of_a_shell(name, code):
    command = [sys.executable, "-c", FIRST_SIGNAL, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (code, "goes on\n")


SIGNALLED_IN_ITS_WAIT = """
import os, signal
from captfctl.cli.signals import end_requested
ending = end_requested()
with ending._cond:  # as `wait` does at its begin and end
    os.kill(os.getpid(), signal.SIGTERM)
ending.wait()
ending.check()
"""


def test_a_signal_that_comes_while_the_command_begins_to_wait_for_it_is_not_lost():
    command = [sys.executable, "-c", SIGNALLED_IN_ITS_WAIT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (143, "")

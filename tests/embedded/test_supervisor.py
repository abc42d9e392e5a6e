"""The supervisor: one container, its tree, its log and its end (local-mode.md: The supervisor)."""

import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.embedded.agent.abilities import cgroup_parent
from captfctl.embedded.agent.containers import Container, ExitWatcher, Phase, start_supervisor
from captfctl.embedded.supervisor import processes, records
from captfctl.embedded.supervisor.launch import MARKER, Launch
from tests.embedded.support import DEADLINE, until


class Run:
    """A container started by the test."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.uid = str(uuid.uuid4())
        self.directory = directory
        self.container = Container(directory, self.uid)
        self.watcher = ExitWatcher()
        self.watcher.start()

    def launch(self, script: str, **more: object) -> Launch:
        fields: dict[str, object] = {
            "directory": str(self.directory),
            "argv": ["/bin/sh", "-c", script],
            "env": {"PATH": os.defpath},
            "cwd": str(self.directory),
            "pod_uid": self.uid,
        }
        return Launch(**{**fields, **more})  # type: ignore[arg-type]

    def start(self, script: str, **more: object) -> threading.Event:
        over = threading.Event()
        self.watcher.watch(start_supervisor(self.launch(script, **more)), over.set)
        return over

    def python(self, script: str, **more: object) -> threading.Event:
        return self.start("", argv=[sys.executable, "-IS", "-c", script], **more)

    def log(self) -> list[str]:
        text = (self.directory / records.LOG).read_text()
        return [line.split(" ", 3)[3] for line in text.splitlines()]

    def end(self) -> records.Ended:
        ended = self.container.ended
        assert ended is not None
        return ended


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path / "container")
    yield run
    processes.end_all(lambda: processes.belonging(f"{MARKER}={run.uid}"), timeout=10)
    run.watcher.stop()


def test_exit_code_and_both_streams_are_kept(run: Run) -> None:
    assert run.start("echo out; echo err >&2; printf last; exit 7").wait(DEADLINE)
    assert run.end().exit_code == 7
    assert run.end().signal == 0
    assert sorted(run.log()) == ["err", "last", "out"]
    assert run.container.phase is Phase.ENDED


def test_a_program_that_does_not_exist_is_told_apart_from_one_that_fails(run: Run) -> None:
    assert run.start("", argv=["/no/such/program"]).wait(DEADLINE)
    assert run.end().exit_code == 127
    assert run.end().reason == "ContainerCannotRun"
    assert "/no/such/program" in run.end().message


def test_a_program_that_may_not_be_executed_says_why(run: Run) -> None:
    script = run.directory / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    assert run.start("", argv=[str(script)]).wait(DEADLINE)
    assert (run.end().exit_code, run.end().reason) == (126, "ContainerCannotRun")


def test_sigterm_reaches_the_main_process_only(run: Run) -> None:
    over = run.python(
        "import os, signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', "
        "'import signal, time, sys\\n"
        'signal.signal(signal.SIGTERM, lambda *_: (print("child got it", flush=True)))\\n'
        'print("child ready", flush=True)\\n'
        "time.sleep(60)'])\n"
        "def stop(*_):\n"
        "    print('main got it', child.poll(), flush=True)\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "time.sleep(60)\n"
    )
    until(lambda: (run.directory / records.LOG).exists() and "child ready" in run.log())
    assert run.container.terminate()
    assert over.wait(DEADLINE)
    assert run.log() == ["child ready", "main got it None"]
    assert run.end().exit_code == 3


def test_a_program_that_holds_sigterm_back_is_not_ended_before_it_can_tell(run: Run) -> None:
    """As the runner, whose interpreter takes its time to start."""
    late = run.directory / "late"
    over = run.python(
        "import os, signal, sys\n"
        f"while not os.path.exists({str(late)!r}): pass\n"
        "def stop(*_):\n"
        "    print('told', flush=True)\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])\n"
        "signal.pause()\n",
        holds_stop=True,
    )
    until(lambda: run.container.running is not None)
    assert run.container.terminate()
    late.touch()
    assert over.wait(DEADLINE)
    assert run.log() == ["told"]
    assert run.end().exit_code == 3


def test_any_other_program_gets_sigterm_from_its_first_moment(run: Run) -> None:
    over = run.start("grep SigBlk /proc/self/status; kill -TERM $$; sleep 60")
    assert over.wait(DEADLINE)
    assert run.log()[0].split()[1] == "0" * 16
    assert run.end().signal == signal.SIGTERM


@pytest.mark.parametrize("escape", ["setsid", "double fork", "empty environment"])
def test_nothing_survives_the_main_process(run: Run, escape: str) -> None:
    leave = {
        "setsid": "os.setsid()",
        "double fork": "os.setsid(); os.fork() and os._exit(0)",
        "empty environment": "os.setsid(); os.fork() and os._exit(0)",
    }[escape]
    env = "{}" if escape == "empty environment" else "os.environ"
    over = run.python(
        "import os, time\n"
        "if os.fork() == 0:\n"
        f"    {leave}\n"
        "    print('pid', os.getpid(), flush=True)\n"
        f"    os.execve('/bin/sleep', ['sleep', '300'], {env})\n"
        "while True: time.sleep(0.1)\n"
    )
    until(lambda: (run.directory / records.LOG).exists() and any("pid" in x for x in run.log()))
    pid = int(run.log()[0].split()[1])
    until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
    running = run.container.running
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    assert over.wait(DEADLINE)
    assert processes.identify(pid) is None
    assert (run.end().exit_code, run.end().signal) == (137, 9)
    assert run.end().left_over >= 1


def test_kill_ends_a_tree_that_ignores_sigterm(run: Run) -> None:
    over = run.start("trap '' TERM; (trap '' TERM; sleep 300) & echo ready; wait; sleep 300")
    until(lambda: (run.directory / records.LOG).exists() and run.log() == ["ready"])
    run.container.terminate()
    assert not over.is_set()
    run.container.kill()
    assert over.wait(DEADLINE)
    assert run.end().signal == signal.SIGKILL
    assert run.container.remains() == []


def test_two_supervisors_of_one_container_start_it_once(run: Run) -> None:
    counter = run.directory / "starts"
    script = f"echo x >> {counter}; sleep 0.2"
    overs = [run.start(script) for _ in range(4)]
    for over in overs:
        assert over.wait(DEADLINE)
    assert counter.read_text() == "x\n"
    assert run.end().exit_code == 0


def test_a_container_that_has_ended_is_not_started_again(run: Run) -> None:
    counter = run.directory / "starts"
    for _ in range(2):
        assert run.start(f"echo x >> {counter}").wait(DEADLINE)
    assert counter.read_text() == "x\n"


@pytest.mark.parametrize("hide", [False, True])
def test_what_a_killed_supervisor_left_is_ended_and_told_honestly(run: Run, hide: bool) -> None:
    hidden = "env -i /bin/sleep 300" if hide else "/bin/sleep 300"
    way = "uts-namespace" if os.geteuid() == 0 else "user-namespace"
    if hide and not _have(way):
        pytest.skip("without a UTS namespace a process with an empty environment is not found")
    over = run.start(
        f"setsid {hidden} & echo ready; wait; sleep 300",
        hostname="a-pod",
        hostname_by=way if hide else "",
    )
    until(lambda: (run.directory / records.LOG).exists() and run.log() == ["ready"])
    supervisor = run.container.supervisor
    assert supervisor is not None
    os.kill(supervisor.pid, signal.SIGKILL)
    assert over.wait(DEADLINE)
    assert run.container.phase is Phase.LOST
    assert run.container.remains() != []
    assert run.container.bury(now=time.time(), timeout=10)
    assert run.container.remains() == []
    assert run.end().exit_code == 137
    assert "supervised" in run.end().message


def stop_supervisor(run: Run) -> processes.Process:
    supervisor = until(lambda: run.container.supervisor if run.container.running else None)
    os.kill(supervisor.pid, signal.SIGSTOP)
    return supervisor


def test_a_stopped_supervisor_goes_on_when_the_container_has_to_end(run: Run) -> None:
    over = run.start("trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: (run.directory / records.LOG).exists() and run.log() == ["ready"])
    stop_supervisor(run)
    assert run.container.terminate()
    assert over.wait(DEADLINE)
    assert run.end().exit_code == 3
    assert run.end().message == ""


@pytest.mark.parametrize("code", [0, 4, 137])
def test_how_a_container_ended_is_known_without_its_supervisor(run: Run, code: int) -> None:
    end = "kill -KILL $$" if code == 137 else f"exit {code}"
    run.start(f"while [ ! -e go ]; do sleep 0.02; done; {end}")
    stop_supervisor(run)
    assert not run.container.neglected
    (run.directory / "go").touch()
    until(lambda: run.container.neglected)
    assert run.container.phase is Phase.RUNNING
    assert run.container.bury(now=time.time(), timeout=10)
    assert run.end().exit_code == code
    assert "did not answer" in run.end().message
    assert run.container.phase is Phase.ENDED
    assert run.container.remains() == []


@pytest.mark.parametrize(
    "child",
    ["env -i /bin/sleep 300 &", "(env -i setsid /bin/sleep 300 &)", "setsid /bin/sleep 300 &"],
    ids=["in its session", "orphaned in a session of its own", "by its environment"],
)
def test_every_process_is_ended_while_the_supervisor_is_stopped(run: Run, child: str) -> None:
    run.start(f"{child}\necho ready\nsleep 300")
    until(lambda: (run.directory / records.LOG).exists() and run.log() == ["ready"])
    supervisor = stop_supervisor(run)
    until(lambda: len(processes.descendants(supervisor.pid)) == 3)  # the shell starts the last one
    tree = processes.descendants(supervisor.pid)
    assert run.container.bury(now=time.time(), timeout=10)
    assert not any(processes.alive(process) for process in (supervisor, *tree))


def _have(way: str) -> bool:
    from captfctl.embedded.agent.abilities import hostname_way

    return hostname_way() == way


def test_the_processes_see_the_pods_name_as_host_name(run: Run) -> None:
    from captfctl.embedded.agent.abilities import hostname_way

    way = hostname_way()
    if way == "lock-attribution":
        pytest.skip("this machine grants no UTS namespace")
    assert run.start("uname -n; id -u", hostname="my-pod-x7k2p", hostname_by=way).wait(DEADLINE)
    assert run.log() == ["my-pod-x7k2p", str(os.getuid())]
    assert os.uname().nodename != "my-pod-x7k2p"


def test_more_memory_than_the_limit_ends_the_container(run: Run) -> None:
    over = run.python(
        "import time\nkeep = bytearray(80 * 1024 * 1024)\nkeep[::4096] = b'x' * len(keep[::4096])\n"
        "time.sleep(60)",
        memory_limit=40 * 1024 * 1024,
        memory_by="watchdog",
    )
    assert over.wait(DEADLINE)
    assert (run.end().exit_code, run.end().reason) == (137, "OOMKilled")


@pytest.mark.parametrize("where", ["main process", "child"])
def test_a_peak_shorter_than_a_sample_is_caught_by_the_kernel(run: Run, where: str) -> None:
    """Also where it ends a child only, and the main process tells of its failure."""
    parent = cgroup_parent()
    if parent is None:
        pytest.skip("this machine grants no cgroup with a memory limit")
    peak = (
        "keep = bytearray(120 * 1024 * 1024)\nkeep[::4096] = b'x' * len(keep[::4096])\n"
        "print('over it', flush=True)\n"
    )
    script = (
        peak
        if where == "main process"
        else (
            "import subprocess, sys\n"
            f"sys.exit(subprocess.run([sys.executable, '-IS', '-c', {peak!r}]).returncode != 0)\n"
        )
    )
    limited = {"memory_limit": 40 * 1024 * 1024, "memory_by": "cgroup", "cgroup": str(parent)}
    assert run.python(script, **limited).wait(DEADLINE)
    assert run.log() == []
    assert run.end().reason == "OOMKilled"
    assert run.end().exit_code == 137 or where == "child"


def test_a_long_log_is_cut_by_age(run: Run) -> None:
    assert run.start("seq 1 30000", log_limit=50_000).wait(DEADLINE)
    older = run.directory / (records.LOG + ".1")
    assert older.exists()
    assert run.log()[-1] == "30000"


def test_a_long_line_is_kept_in_parts(run: Run) -> None:
    assert run.python("print('x' * 40000)").wait(DEADLINE)
    rows = (run.directory / records.LOG).read_text().splitlines()
    assert [row.split(" ", 3)[2] for row in rows] == ["P", "P", "F"]
    assert "".join(row.split(" ", 3)[3] for row in rows) == "x" * 40000


def test_no_secret_of_the_environment_is_on_disk_or_in_arguments(run: Run) -> None:
    over = run.start("echo ready; sleep 300", env={"PATH": os.defpath, "PASSWORD": "s3cret-value"})
    until(lambda: (run.directory / records.LOG).exists() and run.log() == ["ready"])
    supervisor = run.container.supervisor
    assert supervisor is not None
    for pid in (supervisor.pid, *(p.pid for p in processes.descendants(supervisor.pid))):
        assert b"s3cret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for file in run.directory.iterdir():
        assert "s3cret" not in file.read_text(), file
    run.container.kill()
    assert over.wait(DEADLINE)


def test_a_claim_of_another_boot_is_dead(run: Run) -> None:
    run.directory.joinpath(records.CLAIM).write_text(
        json.dumps({"pid": os.getpid(), "start": 1, "boot": "another", "uts": 0})
    )
    assert run.container.phase is Phase.LOST

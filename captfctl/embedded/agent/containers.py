"""A container as the agent sees it: the supervisor that has it, and the files it left.

Everything here works the same for a container started a moment ago and for one that an earlier
agent started: what counts is on disk and in /proc.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from select import EPOLLIN, POLLIN, epoll, poll

import captfctl
from captfctl.embedded.supervisor import processes, records
from captfctl.embedded.supervisor.launch import MARKER, Launch
from captfctl.embedded.supervisor.memory import cgroup_name
from captfctl.embedded.supervisor.processes import Process

_ROOT = Path(captfctl.__file__).parents[1]
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(_ROOT)!r}); "
    "from captfctl.embedded.supervisor.main import main; sys.exit(main())"
)


class Phase(Enum):
    """How far a container has come, as its files tell."""

    ABSENT = auto()
    """Nothing has the container, and nothing of it ever ran."""
    RUNNING = auto()
    ENDED = auto()
    LOST = auto()
    """The supervisor is gone without a word: killed, or the machine was restarted."""


class ExitWatcher:
    """Tells when processes end, also those of other parents."""

    def __init__(self) -> None:
        self._poll = epoll()
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[Process, Callable[[], None]]] = {}
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._wake, EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="exit-watcher", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """End the watcher's thread."""
        os.write(self._woken, b"x")
        self._thread.join()
        self._poll.close()
        for handle in (*self._watched, self._wake, self._woken):
            os.close(handle)
        self._watched.clear()

    def watch(self, process: Process, ended: Callable[[], None]) -> None:
        """Call `ended` once, from the watcher's thread, when `process` has ended."""
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            ended()
            return
        if not processes.alive(process):
            os.close(handle)
            _reap(process.pid)
            ended()
            return
        with self._lock:
            self._watched[handle] = (process, ended)
        self._poll.register(handle, EPOLLIN)

    def _run(self) -> None:
        while True:
            for handle, _ in self._poll.poll():
                if handle == self._wake:
                    return
                self._poll.unregister(handle)
                with self._lock:
                    process, ended = self._watched.pop(handle)
                os.close(handle)
                _reap(process.pid)
                ended()


def _reap(pid: int) -> int | None:
    """Take the exit code of an ended child of ours; None when it is no child, or still runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if done else None


def start_supervisor(launch: Launch) -> Process:
    """Start a supervisor for `launch`. Raises `OSError`.

    It is not an error to start a second one for the same container: one of them gets it.
    """
    told = os.memfd_create("launch", os.MFD_CLOEXEC)
    log = os.open(
        launch.path / records.ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(told, launch.encode())
        os.lseek(told, 0, os.SEEK_SET)
        blocked = (signal.SIGTERM, signal.SIGUSR1)
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-IS", "-c", _PROGRAM],
            {MARKER: launch.pod_uid, "PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, told, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
            setsigmask=blocked,  # until its handlers stand
            setsigdef=(signal.SIGPIPE, signal.SIGINT, *blocked),
        )
    finally:
        os.close(told)
        os.close(log)
    return processes.identify(pid) or Process(pid, 0)


class Container:
    """One container of one pod, in `directory`."""

    def __init__(self, directory: Path, pod_uid: str) -> None:
        self.directory = directory
        self._pod_uid = pod_uid

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        claim = records.read_claim(self.directory)
        if claim is None:
            return Phase.ENDED if self.ended else Phase.ABSENT
        if self._lives(claim):
            return Phase.RUNNING  # also for the moment between its last word and its end
        return Phase.ENDED if self.ended else Phase.LOST

    @property
    def ended(self) -> records.Ended | None:
        """How it ended; None while it has not."""
        return records.read_ended(self.directory)

    @property
    def running(self) -> records.Running | None:
        """Its main process, once it was started."""
        return records.read_running(self.directory)

    @property
    def supervisor(self) -> Process | None:
        """The supervisor that has the container, when it lives."""
        claim = records.read_claim(self.directory)
        return Process(claim.pid, claim.start) if claim and self._lives(claim) else None

    @property
    def main(self) -> Process | None:
        """Its main process, also when it has ended; None when it was not started in this boot."""
        running, claim = self.running, records.read_claim(self.directory)
        known = running is not None and claim is not None and claim.boot == processes.boot_id()
        return Process(running.pid, running.start) if known and running is not None else None

    @property
    def neglected(self) -> bool:
        """Whether its main process has ended and its supervisor takes no notice: it is stopped, or
        stuck. One that does its work has reaped it in a moment."""
        return self.main is not None and processes.unreaped(self.main) is not None

    def wake_supervisor(self) -> None:
        """One that was stopped goes on."""
        self._tell(signal.SIGCONT)

    def terminate(self) -> bool:
        """SIGTERM to the container's main process only; False when there is none any more.

        Not by way of the supervisor, which may be stopped, unless that knows alone which it is.
        """
        self.wake_supervisor()
        main = self.main
        if main is None:
            return self._tell(signal.SIGTERM)
        reached = processes.send(main, signal.SIGTERM)
        processes.send(main, signal.SIGCONT)
        return reached

    def kill(self) -> bool:
        """Have the supervisor end the whole tree; False when there is no supervisor any more."""
        self.wake_supervisor()
        return self._tell(signal.SIGUSR1)

    def kill_and_wait(self, timeout: float) -> None:
        """Have the supervisor end the tree, and wait up to `timeout` seconds for its own end."""
        supervisor = self.supervisor
        if supervisor is None:
            return
        try:
            handle = os.pidfd_open(supervisor.pid)
        except ProcessLookupError:
            return
        try:
            if self.kill():
                ended = poll()
                ended.register(handle, POLLIN)
                ended.poll(timeout * 1000)
        finally:
            os.close(handle)

    def bury(self, *, now: float, timeout: float) -> bool:
        """End what is left without the supervisor's help, and write down how the container ended;
        False when something survives.

        `now` is a Unix time.
        """
        main, supervised = self.main, self.supervisor is not None
        status = processes.unreaped(main) if main is not None else None
        left = processes.end_all(self.remains, timeout=timeout)
        if left is None:
            return False
        running = self.running
        code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
        fate = "did not answer" if supervised else "was killed"
        ended = records.Ended(
            exit_code=code if code >= 0 else 128 - code,
            signal=max(-code, 0),
            message=f"the process that supervised the container {fate}; what was left of the "
            "container was ended",
            started_at=running.at if running else 0.0,
            finished_at=now,
            left_over=left,
        )
        records.write(self.directory / records.EXIT, ended)
        return True

    def remains(self) -> list[Process]:
        """Every process of this container that lives, its supervisor included: by environment,
        host name, cgroup and session, so that none has to be told of by the supervisor."""
        claim = records.read_claim(self.directory)
        uts = claim.uts if claim and claim.boot == processes.boot_id() else 0
        cgroup = cgroup_name(self._pod_uid)
        marker = f"{MARKER}={self._pod_uid}"
        return processes.belonging(marker, uts, cgroup=cgroup, leader=self.main)

    def problem(self) -> str:
        """What a supervisor said that started nothing."""
        try:
            return (self.directory / records.ERRORS).read_text(errors="replace").strip()
        except OSError:
            return ""

    def _lives(self, claim: records.Claim) -> bool:
        process = Process(claim.pid, claim.start)
        return claim.boot == processes.boot_id() and processes.alive(process)

    def _tell(self, number: int) -> bool:
        supervisor = self.supervisor
        return supervisor is not None and processes.send(supervisor, number)


def end_everything(home: Path, pod_uid: str, *, now: float, timeout: float) -> bool:
    """End all containers below `home`, of earlier agents too; False when something survives."""
    directories = [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []
    for container in (Container(path, pod_uid) for path in directories):
        container.kill_and_wait(timeout)
        lost = container.phase in (Phase.RUNNING, Phase.LOST)
        if lost and not container.bury(now=now, timeout=timeout):
            return False
    return True

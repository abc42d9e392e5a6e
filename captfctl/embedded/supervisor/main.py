"""The supervisor's program: start one container, keep its log, end its tree, write how it ended.

Signals: SIGTERM is passed on to the container's main process, and to nobody else; SIGUSR1 kills the
whole tree. Exit codes: 0 the container has ended and that is written down; `LOST_CLAIM` another
supervisor has the container; `NOT_STARTED` nothing was started, and the reason is on stderr.
"""

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

from captfctl.embedded.supervisor import isolation, processes, records
from captfctl.embedded.supervisor.launch import MARKER, Launch
from captfctl.embedded.supervisor.logfile import LogFile
from captfctl.embedded.supervisor.memory import SAMPLE_SECONDS, Cgroup, MemoryBy, cgroup_name

LOST_CLAIM = 75
NOT_STARTED = 74

_NOTICED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD)
_CANNOT_RUN = 126  # the codes of a shell
_NO_SUCH_PROGRAM = 127
_NEVER_RAN = _CANNOT_RUN << 8  # as a wait status
_READ = 64 * 1024
_ENDING_PAUSE_MS = 30
_LINGER = 2.0
"""How long the log is read on after the last process has gone; its pipes end by themselves."""


class Supervisor:
    """The supervisor of one container, in its own process."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stop = False
        self._kill = False
        self._main = 0
        self._status: int | None = None
        self._reason = ""
        self._message = ""
        self._started = time.time()
        self._left_over: set[processes.Process] = set()
        self._cgroup: Cgroup | None = None

    def run(self) -> int:
        """From the claim to the record of the end; the exit code."""
        self._take_signals()
        isolation.become_reaper()
        uts = isolation.take_hostname(self._launch.hostname, self._launch.hostname_by)
        myself = processes.identify(os.getpid())
        assert myself is not None
        claim = records.Claim(myself.pid, myself.start, processes.boot_id(), uts)
        if not records.claim(self._launch.path / records.CLAIM, claim):
            return LOST_CLAIM
        log = LogFile(self._launch.path / records.LOG, self._launch.log_limit)
        streams: dict[int, str] = {}
        try:
            streams = self._start()
        except OSError as problem:
            self._reason, self._message = "ContainerCannotRun", str(problem)
        self._watch(streams, log)
        log.close()
        self._write_end(log.dropped)
        return 0

    # Signals only leave a note; the loop in `_watch` acts on it.

    def _take_signals(self) -> None:
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in _NOTICED:
            signal.signal(number, self._note)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _NOTICED)

    def _note(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM:
            self._stop = True
        elif number == signal.SIGUSR1:
            self._kill = True

    def _start(self) -> dict[int, str]:
        """Start the container; its output's descriptors by name of the stream."""
        if self._launch.memory_by == MemoryBy.CGROUP:
            name = cgroup_name(self._launch.pod_uid, self._launch.path.name)
            self._cgroup = Cgroup(Path(self._launch.cgroup), name, self._launch.memory_limit)
        out, out_end = os.pipe2(os.O_CLOEXEC)
        err, err_end = os.pipe2(os.O_CLOEXEC)
        failed, failed_end = os.pipe2(os.O_CLOEXEC)
        held = (signal.SIGTERM,) if self._launch.holds_stop else ()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
        self._main = os.fork()
        if self._main == 0:
            self._become_container(out_end, err_end, failed_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for end in (out_end, err_end, failed_end):
            os.close(end)
        with os.fdopen(failed, "rb") as answer:
            problem = answer.read().decode()
        if problem:
            self._reason, self._message = "ContainerCannotRun", problem
        else:
            self._started = time.time()
            main = processes.identify(self._main)
            start = main.start if main else 0
            running = records.Running(self._main, start, self._started)
            with contextlib.suppress(OSError):
                records.write(self._launch.path / records.RUNNING, running)
        return {out: "stdout", err: "stderr"}

    def _become_container(self, out: int, err: int, failed: int) -> None:
        """In the child: never returns."""
        launch = self._launch
        code = _CANNOT_RUN
        try:
            signal.set_wakeup_fd(-1)
            for number in (*_NOTICED, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            if self._cgroup is not None:
                self._cgroup.enter()
            os.chdir(launch.cwd)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            env = {**launch.env, MARKER: launch.pod_uid}
            os.execvpe(launch.argv[0], launch.argv, env)  # noqa: S606 - without a shell is meant
        except FileNotFoundError as problem:
            code = _NO_SUCH_PROGRAM
            os.write(failed, _explain(launch, problem))
        except OSError as problem:
            os.write(failed, _explain(launch, problem))
        finally:
            os._exit(code)

    def _watch(self, streams: dict[int, str], log: LogFile) -> None:
        """Until nothing of the tree lives and its output is read."""
        poll = select.poll()
        for descriptor in (self._wake, *streams):
            poll.register(descriptor, select.POLLIN)
        next_sample = time.monotonic()
        ended_at: float | None = None
        while True:
            for descriptor, _ in poll.poll(self._pause_ms(ended_at)):
                if descriptor == self._wake:
                    os.read(self._wake, _READ)
                elif data := os.read(descriptor, _READ):
                    log.feed(streams[descriptor], data)
                else:
                    poll.unregister(descriptor)
                    os.close(descriptor)
                    del streams[descriptor]
            empty = self._reap()
            self._act()
            if self._launch.memory_by == MemoryBy.WATCHDOG and time.monotonic() >= next_sample:
                self._sample_memory()
                next_sample = time.monotonic() + SAMPLE_SECONDS
            if empty:
                ended_at = ended_at or time.monotonic()
                if not streams or time.monotonic() > ended_at + _LINGER:
                    return

    def _pause_ms(self, ended_at: float | None) -> int:
        if ended_at is not None or self._status is not None or self._kill:
            return _ENDING_PAUSE_MS  # a tree is being ended: look again soon
        watching = self._launch.memory_by == MemoryBy.WATCHDOG
        return int(SAMPLE_SECONDS * 1000) if watching else 60_000

    def _reap(self) -> bool:
        """Take the exit statuses; True when no descendant is left.

        A subreaper without children has no descendants: an orphan anywhere below would be a child.
        """
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._main:
                self._status = status

    def _act(self) -> None:
        if self._stop and self._status is None:
            self._stop = False
            os.kill(self._main, signal.SIGTERM)
        if self._kill or self._status is not None:
            # As when the first process of a PID namespace ends: all others end with it.
            for process in processes.descendants(os.getpid()):
                if processes.send(process, signal.SIGKILL) and process.pid != self._main:
                    self._left_over.add(process)

    def _sample_memory(self) -> None:
        if self._reason or self._status is not None:
            return
        tree = processes.descendants(os.getpid())
        if processes.resident_bytes(tree) > self._launch.memory_limit:
            self._reason, self._kill = "OOMKilled", True

    def _write_end(self, dropped: int) -> None:
        status = self._status if self._status is not None else _NEVER_RAN
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if self._cgroup is not None:
            with contextlib.suppress(OSError):
                if self._cgroup.out_of_memory:
                    self._reason = "OOMKilled"
            self._cgroup.remove()
        ended = records.Ended(
            exit_code=128 + number if number else os.WEXITSTATUS(status),
            signal=number,
            reason=self._reason,
            message=self._message,
            started_at=self._started,
            finished_at=time.time(),
            left_over=len(self._left_over),
            dropped_log_bytes=dropped,
        )
        _write_patiently(self._launch.path / records.EXIT, ended)


def _explain(launch: Launch, problem: OSError) -> bytes:
    at = problem.filename or launch.argv[0]
    return f"cannot run {at}: {problem.strerror}".encode()


def _write_patiently(path: Path, ended: records.Ended) -> None:
    """A full disk must not lose how a container ended: try until there is room, or no directory."""
    while True:
        try:
            records.write(path, ended)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(1)
        else:
            return


def main() -> int:
    """The program: read what to start, and supervise it."""
    with os.fdopen(0, "rb", closefd=False) as stdin:
        launch = Launch.decode(stdin.read())
    try:
        return Supervisor(launch).run()
    except OSError as problem:
        print(problem, file=sys.stderr)
        return NOT_STARTED


if __name__ == "__main__":
    sys.exit(main())

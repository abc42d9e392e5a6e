"""Where a scenario runs, and what it may do there."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from captfctl.cluster.live import LiveDoor

ROOT = Path(__file__).parents[2]
CAPTFCTL = Path(sys.executable).with_name("captfctl")
IMAGE = "registry.example.com/quickstart/cluster:v1"
QUICK_IMAGE = "registry.example.com/quick/cluster:v1"
"""The same with a runtime that does nothing but keep its state: for many objects at once."""

APPROVALS_IMAGE = "registry.example.com/approvals/cluster:v1"
APPROVALS = ROOT / "examples" / "approvals" / "module"
SECRETS_IMAGE = "registry.example.com/secrets/cluster:v1"
"""The same with a sensitive output, and a provider whose error quotes a credential."""

QUICKSTART = ROOT / "examples" / "quickstart" / "module"
_QUICK_RUNTIME = ROOT / "tests" / "tools" / "quick_runtime.py"
QUICK_MODULE = ROOT / "tests" / "tools" / "quick_module"


def eventually(
    check: Callable[[], object], what: str | Callable[[], str], seconds: float = 60.0
) -> None:
    """Wait until `check` is true; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"{said}: not within {seconds:.0f} s")
        time.sleep(0.05)


def kubectl(kubeconfig: Path, *arguments: str, check: bool = True, text: str | None = None) -> str:
    """What kubectl prints."""
    binary = shutil.which("kubectl")
    assert binary, "kubectl is not on PATH"
    done = subprocess.run(
        [binary, f"--kubeconfig={kubeconfig}", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        # kubectl's cache of discovery documents must not be another server's.
        env=os.environ | {"HOME": str(kubeconfig.parent)},
    )
    if check and done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}")
    return done.stdout


def _quick_runtime(folder: Path) -> Path:
    """The quick runtime in the interpreter of the tests.

    `python3` may be a version manager's script, which starts a dozen processes of its own: more
    work than a whole run.
    """
    runtime = folder / "quick-runtime"
    runtime.write_text(f'#!/bin/sh\nexec "{sys.executable}" -SEs "{_QUICK_RUNTIME}" "$@"\n')
    runtime.chmod(0o755)
    return runtime


class Site(ABC):
    """One control plane with a manager and a node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = folder / "images.yaml"
        self.kubeconfig = folder / "kubeconfig"
        self._given: Counter[str] = Counter()
        folder.mkdir(parents=True, exist_ok=True)
        self.images.write_text("")
        self.add_image(IMAGE, module=QUICKSTART)
        self.add_image(APPROVALS_IMAGE, module=APPROVALS)
        secrets = folder / "secrets"
        shutil.copytree(APPROVALS, secrets, dirs_exist_ok=True)
        shutil.copy(ROOT / "tests" / "e2e" / "modules" / "secrets.tf", secrets)
        self.add_image(SECRETS_IMAGE, module=secrets)
        self.add_image(QUICK_IMAGE, module=QUICK_MODULE, runtime=_quick_runtime(folder))

    def fresh_name(self, name: str) -> str:
        """`name`, or one like it where this site had it before: for a test that is tried again."""
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}-{self._given[name]}"

    def add_image(self, reference: str, **row: Path) -> None:
        """One more row of the image table; before the start."""
        fields = "".join(f"  {name}: {value}\n" for name, value in row.items())
        self.images.write_text(f"{self.images.read_text()}{reference}:\n{fields}")

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def crash_manager(self) -> None:
        """Kill it with SIGKILL and start it again."""

    @abstractmethod
    def crash_node(self) -> None:
        """Kill the node agent with SIGKILL and start it again."""

    @property
    @abstractmethod
    def node_data(self) -> Path:
        """The node agent's directory: part of every command line of a pod's processes."""

    def door(self) -> LiveDoor:
        return LiveDoor.from_kubeconfig(self.kubeconfig)

    def kubectl(self, *arguments: str, check: bool = True, text: str | None = None) -> str:
        return kubectl(self.kubeconfig, *arguments, check=check, text=text)

    def processes(self, *words: str) -> dict[int, str]:
        """Processes of pods, by pid; their command lines have all `words`."""
        wanted = (str(self.node_data), *words)
        return {pid: line for pid, line in command_lines() if all(word in line for word in wanted)}


def command_lines() -> Iterator[tuple[int, str]]:
    """The command line of each process of this machine that is not a zombie."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if line:
                    yield int(entry.name), line


def children(parent: int, word: str) -> list[int]:
    """Child processes of `parent` whose command line has `word`."""
    found = []
    for pid, line in command_lines():
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            if word in line and int(stat.rpartition(")")[2].split()[1]) == parent:
                found.append(pid)
    return found


def die_with_parent() -> None:
    """For a child just forked: it is killed when the tests are."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Captfctl:
    """A captfctl command in the background, with its output in a file."""

    def __init__(
        self,
        log: Path,
        *arguments: str,
        command: Sequence[str] = (str(CAPTFCTL),),
        **environment: str,
    ) -> None:
        self.log = log
        self._command = command
        self._arguments = arguments
        self._environment = environment
        self.child: subprocess.Popen[bytes] | None = None

    def start(self, until: str) -> None:
        """Start it and wait until its output has `until`."""
        self.launch()
        self.wait_told(until)

    def launch(self) -> None:
        self.log.write_bytes(b"")
        with self.log.open("ab") as output:
            self.child = subprocess.Popen(
                [*self._command, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | self._environment,
                preexec_fn=die_with_parent,
                start_new_session=True,  # Ctrl-C ends it in its turn, not all at once
            )

    def wait_told(self, until: str) -> None:
        """Until its output has `until`; fails when it ends before."""
        eventually(lambda: until in self.output() or not self.alive, f"start of {self._arguments}")
        assert self.alive, self.output()

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        assert self.child is not None
        self.child.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Until it ends by itself; the exit code."""
        assert self.child is not None
        return self.child.wait(seconds)

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.wait()

    def terminate(self, seconds: float = 60.0) -> int:
        """SIGTERM; the exit code."""
        assert self.child is not None
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"{self._arguments} did not end:\n{self.output()}") from None


class LocalSite(Site):
    """`captfctl local up`: control plane, node and manager in one process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data = folder / "data"
        self.kubeconfig = self.data / "api" / "kubeconfig"
        self.up = Captfctl(
            folder / "up.log",
            "local",
            "up",
            f"--data={self.data}",
            f"--images={self.images}",
            "-v2",
        )

    def start(self) -> None:
        self.up.start("Ctrl-C ends it")

    def stop(self) -> None:
        if self.up.alive:
            self.up.terminate()

    def crash_manager(self) -> None:
        self.up.kill()
        self.start()

    def crash_node(self) -> None:
        self.crash_manager()

    @property
    def node_data(self) -> Path:
        return self.data / "node"

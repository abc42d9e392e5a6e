"""Runs the runner against a fake runtime, in this process or in one of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runner import cli
from runner.signals import Cancellation

FAKE_RUNTIME = Path(__file__).parents[1] / "tools" / "fake_runtime"
REPOSITORY = Path(__file__).parents[2]
PLAN_KEY = bytes(range(32))
PATIENCE = 30.0


class Call(NamedTuple):
    """One call of the fake runtime."""

    name: str
    arguments: list[str]


class Outcome(NamedTuple):
    """How one run of the runner ended."""

    exit: int
    out: str
    err: str
    result: dict[str, Any] | None
    calls: list[Call]

    @property
    def steps(self) -> list[str]:
        """The names of the recorded steps."""
        return [step["name"] for step in self.document["steps"]]

    @property
    def document(self) -> dict[str, Any]:
        """The result, which must be there."""
        assert self.result is not None, self.err
        return self.result

    @property
    def error(self) -> dict[str, Any]:
        """The result's error, which must be there."""
        assert self.document["error"] is not None
        return self.document["error"]

    @property
    def called(self) -> list[str]:
        """The subcommands called, `version` left out."""
        return [call.name for call in self.calls if call.name != "version"]

    @property
    def everything(self) -> str:
        """All a reader could see of the run."""
        return self.out + self.err + json.dumps(self.result, ensure_ascii=False)


class Job:
    """The directories of one Job and the fake runtime's play."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = path / "module"
        self.config = path / "config"
        self.workdir = path / "work"
        self.result = path / "result.json"
        self.key_file = path / "key"
        self.tmp = path / "tmp"
        self._play = path / "play"
        for directory in (self.module, self.config, self.tmp, self._play, self._play / "calls"):
            directory.mkdir()
        (self.module / "main.tf").write_text("")
        (self.config / "main.tf.json").write_text("{}")
        (self.config / "terraform.tfvars.json").write_text("{}")
        self.key_file.write_bytes(PLAN_KEY)
        self.play("version", '{"terraform_version":"1.9.9","platform":"linux_amd64"}')
        self.play("validate", '{"valid":true,"diagnostics":[]}')
        self.environ = {
            "PATH": os.environ["PATH"],
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "HOME": str(self.workdir),
            "TMPDIR": str(self.tmp),
            "KUBE_NAMESPACE": "default",
            "CHECKPOINT_DISABLE": "1",
        }

    @property
    def root(self) -> Path:
        """Where the steps run."""
        return self.workdir / "root"

    def play(
        self,
        name: str,
        out: str | bytes = "",
        *,
        err: str | bytes = "",
        exit: int = 0,
        script: str = "",
    ) -> None:
        """What the fake runtime does when `name` is called."""
        for suffix, content in (("out", out), ("err", err), ("sh", script), ("exit", str(exit))):
            data = content if isinstance(content, bytes) else content.encode()
            (self._play / f"{name}.{suffix}").write_bytes(data)

    def environment_of(self, name: str, run: Callable[[], object]) -> dict[str, str]:
        """The environment the call `name` gets while `run` runs."""
        file = self._play / f"{name}.env"
        file.write_bytes(b"")
        run()
        pairs = [entry.partition("=") for entry in file.read_text().split("\0") if entry]
        assert len(pairs) == len({name for name, _, _ in pairs})
        return {name: value for name, _, value in pairs}

    def flags(self, *more: str) -> list[str]:
        """A command line of `run`; what is in `more` comes last."""
        return [
            "run",
            f"--bin={FAKE_RUNTIME}",
            f"--bin={self._play}",
            f"--module={self.module}",
            f"--config={self.config}",
            f"--workdir={self.workdir}",
            f"--providers={self.path / 'providers'}",
            f"--plan-key-file={self.key_file}",
            f"--result={self.result}",
            *more,
        ]

    def run(self, *more: str, environ: Mapping[str, str] | None = None) -> Outcome:
        """Run in this process."""
        return self.run_arguments(self.flags(*more), environ)

    def run_arguments(
        self, arguments: list[str], environ: Mapping[str, str] | None = None
    ) -> Outcome:
        """Run a whole command line in this process."""
        exit_code, out, err = invoke(
            arguments, self.environ if environ is None else environ, self.path
        )
        return self._outcome(exit_code, out, err)

    def start(self, *more: str, environ: Mapping[str, str] | None = None) -> "Started":
        """Start the runner as a process of its own."""
        return Started(self, self.flags(*more), self.environ if environ is None else environ)

    def marker(self, name: str) -> Path:
        """A file with which a script tells that it has come so far."""
        return self.path / name

    def calls(self) -> list[Call]:
        """What the fake runtime was called with, in order."""
        found = []
        for file in sorted((self._play / "calls").iterdir()):
            arguments = file.read_bytes().decode().split("\0")[:-1]
            found.append(Call(file.name.partition(".")[2], arguments))
        return found

    def _outcome(self, exit_code: int, out: bytes, err: bytes) -> Outcome:
        result = None
        if self.result.exists():
            data = self.result.read_bytes()
            assert len(data) <= 4096
            result = json.loads(data)
        return Outcome(
            exit_code,
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
            result,
            self.calls(),
        )


class Started:
    """The runner in a process of its own."""

    def __init__(self, job: Job, arguments: list[str], environ: Mapping[str, str]) -> None:
        self._job = job
        self._out = (job.path / "stdout").open("w+b")
        self._err = (job.path / "stderr").open("w+b")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runner", *arguments],
            cwd=REPOSITORY,
            env=dict(environ),
            stdout=self._out,
            stderr=self._err,
        )

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send the runner a signal."""
        self.process.send_signal(number)

    def end(self) -> Outcome:
        """Wait for the runner's end."""
        exit_code = self.process.wait(PATIENCE)
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return self._job._outcome(exit_code, *texts)


def invoke(
    arguments: list[str], environ: Mapping[str, str], scratch: Path
) -> tuple[int, bytes, bytes]:
    """Run a command line in this process: exit code, standard output, standard error."""
    cancellation = Cancellation()
    cancellation.watch()
    with (scratch / "out").open("w+b") as out, (scratch / "err").open("w+b") as err:
        try:
            console = cli.Console(out.fileno(), err.fileno())
            exit_code = cli.main(arguments, environ, cancellation, console)
        finally:
            cancellation.release()
        out.seek(0)
        err.seek(0)
        return exit_code, out.read(), err.read()


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def plan_json(
    *changes: tuple[str, list[str]], outputs: Mapping[str, list[str]] | None = None
) -> str:
    """A plan as `show -json` prints it, with nothing but addresses and actions."""
    return json.dumps(
        {
            "format_version": "1.2",
            "resource_changes": [
                {"address": address, "change": {"actions": actions}} for address, actions in changes
            ],
            "output_changes": {
                name: {"actions": actions} for name, actions in (outputs or {}).items()
            },
        }
    )

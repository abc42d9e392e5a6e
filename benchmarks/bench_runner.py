"""What the runner adds to the runtime's own commands, and what its own work costs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Missing, Yardstick, at_most, at_most_times
from benchmarks.timing import alternately, best
from runner import plan
from runner.redact import Redactor, SecretSet

ROUNDS = 7
ROOT = Path(__file__).parents[1]
BINARY = ROOT / "dist" / "runner"
PLAN_RESOURCES = 3000
LOG_BYTES = 64 * 1024 * 1024
PIECE = 65536
_OVER_LIMIT = 50.0
_REDACTION_LIMIT = 100.0
_PROGRAM = "int main(void) { return 0; }\n"

# As the node agent starts it: without the site's own start-up files.
_START = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from runner.__main__ import main
sys.exit(main())
"""

_MAIN: dict[str, Any] = {
    "variable": {"n": {"type": "number"}},
    "resource": {"terraform_data": {"one": {"input": "${var.n}"}}},
}
_COMMON = ("-input=false", "-no-color", "-lock-timeout=300s")
_STEPS = (
    ("version", "-json"),
    ("init", *_COMMON),
    ("validate", "-json", "-no-color"),
    ("apply", *_COMMON, "-json", "-auto-approve", "-var-file=terraform.tfvars.json"),
)


def run() -> Iterator[Figure]:
    runtime = shutil.which("terraform") or shutil.which("tofu")
    if runtime is None:
        raise Missing(
            "neither terraform nor tofu is on PATH; install one, or put the one that "
            "`make control-plane` builds there"
        )
    yield from _apply(runtime)
    yield from _binary()
    yield from _redaction()
    yield from _fingerprint()


class _Apply:
    """One apply in fresh directories, by the runner or by the bare commands."""

    def __init__(self, place: Path, runtime: str, runner: list[str] | None) -> None:
        self._place, self._runtime, self._runner = place, runtime, runner
        self._count = 0
        (place / "module").mkdir(exist_ok=True)
        (place / "module" / "main.tf").write_text("")
        self._files = {"main.tf.json": _MAIN, "terraform.tfvars.json": {"n": 1}}
        (place / "config").mkdir(exist_ok=True)
        self._write(place / "config")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
        }

    def __call__(self) -> None:
        self._count += 1
        work = self._place / f"{id(self)}-{self._count}"
        if self._runner is None:
            self._bare(work)
            return
        command = [
            *self._runner,
            "run",
            "--op=apply",
            f"--bin={self._runtime}",
            f"--module={self._place / 'module'}",
            f"--config={self._place / 'config'}",
            f"--workdir={work}",
            f"--providers={self._place / 'none'}",
            f"--result={self._place / 'result.json'}",
        ]
        self._call(command, ROOT)

    def _bare(self, work: Path) -> None:
        work.mkdir()
        self._write(work)
        for step in _STEPS:
            self._call([self._runtime, *step], work)

    def _write(self, folder: Path) -> None:
        for name, content in self._files.items():
            (folder / name).write_text(json.dumps(content))

    def _call(self, command: list[str], folder: Path) -> None:
        done = subprocess.run(
            command, cwd=folder, env=self._environment, capture_output=True, check=False
        )
        if done.returncode:
            told = (done.stdout + done.stderr).decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{told}")


def _apply(runtime: str) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        bare = _Apply(folder, runtime, None)
        ways = {"runner": [sys.executable, "-IS", "-c", _START]}
        if BINARY.exists():
            ways["dist/runner"] = [str(BINARY)]
        runs = [_Apply(folder, runtime, command) for command in ways.values()]
        plain, *ours = (min(taken) * 1e3 for taken in alternately([bare, *runs], ROUNDS))
    stick = Yardstick(name=f"bare {Path(runtime).name} commands", value=plain)
    for way, taken in zip(ways, ours, strict=True):
        yield Figure(what=f"{way}: one apply", value=taken, unit="ms", yardstick=stick)
        yield at_most(f"{way}: time over the bare commands", taken - plain, "ms", _OVER_LIMIT)


def _binary() -> Iterator[Figure]:
    """Start-up and size of the self-contained executable."""
    compiler = shutil.which("cc")
    if not BINARY.exists() or compiler is None:
        return
    with tempfile.TemporaryDirectory() as place:
        source, program = Path(place) / "empty.c", Path(place) / "empty"
        source.write_text(_PROGRAM)
        subprocess.run([compiler, "-O2", "-static", "-o", program, source], check=True)
        commands = ([str(program)], [str(BINARY), "version"])
        empty, ours = (
            min(taken) * 1e3
            for taken in alternately(
                [
                    lambda c=command: subprocess.run(c, check=True, capture_output=True)  # type: ignore[misc]
                    for command in commands
                ],
                ROUNDS,
            )
        )
    stick = Yardstick(name="an empty C program", value=empty)
    yield Figure(what="dist/runner version", value=ours, unit="ms", yardstick=stick)
    yield Figure(what="dist/runner: size", value=BINARY.stat().st_size / 1e6, unit="MB")


def _redaction() -> Iterator[Figure]:
    """A log without a hit, with as many secrets as a run usually has and with very many."""
    for count in (20, 500):
        yield _redaction_with(count)


def _redaction_with(count: int) -> Figure:
    line = b"module.network.aws_subnet.private[2]: Creation complete after 3s [id=subnet-0a1b2c]\n"
    piece = (line * (PIECE // len(line) + 1))[:PIECE]
    pieces = LOG_BYTES // PIECE
    secrets = SecretSet()
    for number in range(count):
        secrets.add(f"a-secret-value-number-{number:04}".encode())
    redactor = Redactor(secrets)

    def redact() -> None:
        stream = redactor.stream()
        for _ in range(pieces):
            stream.feed(piece)
        stream.flush()

    def search() -> None:
        for _ in range(pieces):
            piece.find(b"a-secret-value-number-0000")

    ours, plain = best(redact, 3), best(search, 3)
    stick = Yardstick(name="bytes.find of one value", value=LOG_BYTES / plain / 1e6)
    rate = LOG_BYTES / ours / 1e6
    return Figure(
        what=f"runner: redaction of a log without a hit, {count} secrets",
        value=rate,
        unit="MB/s",
        yardstick=stick,
        aim=f"at least {_REDACTION_LIMIT:.0f} MB/s",
        kept=rate >= _REDACTION_LIMIT,
    )


def _fingerprint() -> Iterator[Figure]:
    values = {"name": "x" * 40, "tags": {"a": "b", "c": "d"}, "ports": [80, 443], "size": 3}
    changes = [
        {
            "address": f"terraform_data.r[{number}]",
            "mode": "managed",
            "type": "terraform_data",
            "name": "r",
            "index": number,
            "change": {"actions": ["update"], "before": values, "after": {**values, "size": 4}},
        }
        for number in range(PLAN_RESOURCES)
    ]
    text = json.dumps({"format_version": "1.2", "resource_changes": changes}).encode()
    ours = best(lambda: plan.read([text], b"k" * 32), 3) * 1e3
    plain = best(lambda: json.loads(text), 3) * 1e3
    stick = Yardstick(name="json.loads of the plan", value=plain)
    what = f"runner: fingerprint of {PLAN_RESOURCES} resources ({len(text) / 1e6:.1f} MB)"
    yield Figure(what=what, value=ours, unit="ms", yardstick=stick)
    size = Yardstick(name="the plan's size", value=len(text) / 1e6)
    what = "runner: memory of that, the plan included"
    yield at_most_times(what, _most_memory(text) / 1e6, "MB", 3.0, size)


def _most_memory(text: bytes) -> int:
    """The most bytes held while a plan is read that came in pieces, as from a pipe."""
    tracemalloc.start()
    try:
        pieces = deque(text[start : start + PIECE] for start in range(0, len(text), PIECE))
        plan.read((pieces.popleft() for _ in range(len(pieces))), b"k" * 32)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

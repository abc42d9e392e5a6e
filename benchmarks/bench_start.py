"""How long commands take to start: each against a Python that imports typer, the library of
command lines."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.figures import Figure, Yardstick, at_most_times
from benchmarks.timing import alternately
from captfctl.clock import SystemClock
from captfctl.embedded.apiserver import ApiServer
from captfctl.embedded.store import EmbeddedStore
from captfctl.model.crds import crds
from captfctl.model.resources import CRDS

ROUNDS = 10
CAPTFCTL = str(Path(sys.executable).with_name("captfctl"))
QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart"
_LIMIT = 1.5


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as place:
        store = EmbeddedStore.in_memory(SystemClock())
        for document in crds():
            store.door().create(CRDS.untyped(), document)
        server = ApiServer(store, data_dir=Path(place), clock=SystemClock())
        server.start()
        try:
            yield from _measure(str(server.kubeconfig_path))
        finally:
            server.stop()
            store.close()


def _measure(kubeconfig: str) -> Iterator[Figure]:
    commands = [
        [sys.executable, "-c", "import typer"],
        [CAPTFCTL, "--version"],
        [CAPTFCTL, "get", f"--kubeconfig={kubeconfig}"],
        [CAPTFCTL, "reconcile", "-f", str(QUICKSTART), "--dry-run"],
    ]
    times = alternately([_Command(command) for command in commands], ROUNDS)
    typer, version, get, dry_run = (min(taken) * 1e3 for taken in times)
    stick = Yardstick(name="python -c 'import typer'", value=typer)
    yield at_most_times("captfctl --version", version, "ms", _LIMIT, stick)
    yield Figure(what="captfctl get (no objects)", value=get, unit="ms", yardstick=stick)
    yield Figure(what="captfctl reconcile --dry-run", value=dry_run, unit="ms", yardstick=stick)


class _Command:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __call__(self) -> None:
        subprocess.run(self._command, check=True, capture_output=True)

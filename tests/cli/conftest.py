"""The command line in this process: what it prints and how it ends."""

import io
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from captfctl.cli import main
from tests.cli.plane import Plane

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def captfctl(monkeypatch, capsys, tmp_path):
    """Run `captfctl` with these arguments, in an empty directory, without any configuration."""
    monkeypatch.chdir(tmp_path)
    for name in ("KUBECONFIG", "CAPTFCTL_IMAGES", "CAPTF_MANAGER_IMAGE", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["captfctl", *arguments])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def quickstart(tmp_path):
    """The quick start's objects, changed by text replacement, as a file."""

    def write(*changes: tuple[str, str]) -> str:
        text = (QUICKSTART / "cluster.yaml").read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "cluster.yaml"
        file.write_text(text)
        return str(file)

    return write


@pytest.fixture
def plane(tmp_path: Path) -> Plane:
    return Plane(tmp_path / "data")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch) -> Callable[[str], None]:
    """Somebody at a terminal who types this."""

    def answer(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(f"{text}\n"))
        monkeypatch.setenv("TERM", "dumb")
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)

    return answer

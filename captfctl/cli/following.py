"""Following objects to the end of a command: what is shown, when it is given up, how it ends."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from captfctl.cli.connect import running_here
from captfctl.cli.display import make_display
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.progress import Display
from captfctl.cli.settled import Standing, Verdict
from captfctl.cli.signals import EndRequest
from captfctl.cli.targets import Target
from captfctl.errors import EnvironmentFault

EXIT_FAILED = 4
EXIT_WAITING = 5
EXIT_TIMEOUT = 6
_EXITS = {
    Standing.READY: 0,
    Standing.WORKING: EXIT_TIMEOUT,
    Standing.WAITING: EXIT_WAITING,
    Standing.FAILED: EXIT_FAILED,
    Standing.LACKING: EnvironmentFault.exit_code,
}


@contextmanager
def shown(followed: list[Target], pulse: Heartbeat) -> Iterator[Display]:
    """The display of these objects, closed at the end."""
    display = make_display(followed, pulse)
    try:
        yield display
    finally:
        display.close()


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """How the command ends (docs/exit-codes.md)."""
    return _EXITS[max((verdict.standing for verdict in verdicts), default=Standing.READY)]


def check_going_on(ending: EndRequest, home: Path) -> None:
    """Raises when this command, or the control plane in `home` that it only visits, was ended."""
    ending.check()
    if not running_here(home):
        raise EnvironmentFault(
            "the control plane has ended before every object was settled",
            where=str(home),
            why="it belonged to another captfctl command, which is done",
            do="run this command again: it goes on where that one stopped",
        )


def summarize(verdicts: dict[Target, Verdict]) -> None:
    """Tell of the objects that are still on their way."""
    for target, verdict in sorted(verdicts.items()):
        if verdict.standing is Standing.WORKING:
            print(f"{target.shown} is not settled: {verdict.why}", file=sys.stderr)

"""The two ways progress is shown."""

import sys
from collections.abc import Mapping
from typing import Any

from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.progress import Display
from captfctl.cli.settled import Standing, Verdict
from captfctl.cli.targets import Target
from captfctl.model.core import Event

_MARKS = {
    Standing.READY: "ready",
    Standing.WORKING: "",
    Standing.WAITING: "waits",
    Standing.FAILED: "failed",
    Standing.LACKING: "cannot run here",
}


_WIDEST = 40
"""Columns that names are padded to at most: text begins in one column unless a name is longer."""


class Lines:
    """One line per event, for pipes and logs, and one after some silence."""

    def __init__(self, width: int, pulse: Heartbeat) -> None:
        self._width = width
        self._pulse = pulse

    def event(self, target: Target, event: Event) -> None:
        note = event.note.replace("\n", " ")
        self._line(target, f"{event.reason}: {note}" if note else event.reason)

    def standing(self, target: Target, verdict: Verdict, seconds: float) -> None:
        mark = _MARKS[verdict.standing]
        if mark:
            why = f": {verdict.why}" if verdict.why else f" after {seconds:.1f}s"
            self._line(target, f"{mark}{why}".replace("\n", " "))

    def waiting(self, verdicts: Mapping[Target, Verdict]) -> None:
        self._pulse.now_doing(still(verdicts))

    def close(self) -> None:
        self._pulse.now_doing("")

    def _line(self, target: Target, text: str) -> None:
        self._pulse.say(f"{target.shown:<{self._width}}  {text}")


def still(verdicts: Mapping[Target, Verdict]) -> str:
    """What is waited for, in one line however many objects there are."""
    working = [target for target, found in verdicts.items() if not found.settled]
    if not working:
        return "waiting for a moment whether it lasts"
    first = working[0]
    text = f"{first.shown}  still working"
    if why := verdicts[first].why:
        text += f": {why}".replace("\n", " ")
    others = len(working) - 1
    return f"{text}; and {others} more of {len(verdicts)}" if others else text


class Live:
    """A table that is redrawn: one row per object, with its standing and its last event."""

    def __init__(self, targets: list[Target]) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._rows: dict[Target, tuple[str, str]] = dict.fromkeys(targets, ("", ""))
        self._console = Console()
        self._live: Any = RichLive(self._table(), console=self._console, refresh_per_second=8)
        self._live.start()

    def event(self, target: Target, event: Event) -> None:
        style = "red" if event.type == "Warning" else "none"
        self._print(f"[dim]{target.shown}[/dim]  ", f"{event.reason}: {event.note}", style)
        standing, _ = self._rows[target]
        self._rows[target] = (standing, event.reason)
        self._live.update(self._table())

    def standing(self, target: Target, verdict: Verdict, seconds: float) -> None:
        mark = _MARKS[verdict.standing] or "working"
        self._rows[target] = (mark, verdict.why or f"after {seconds:.1f}s")
        self._live.update(self._table())

    def waiting(self, verdicts: Mapping[Target, Verdict]) -> None:
        pass  # the table shows it

    def close(self) -> None:
        self._live.stop()

    def _print(self, prefix: str, text: str, style: str) -> None:
        from rich.markup import escape
        from rich.text import Text

        line = Text.from_markup(f"{prefix}{escape(text)}", style=style if style != "none" else "")
        self._live.console.print(line)

    def _table(self) -> Any:
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("OBJECT")
        table.add_column("STANDING")
        table.add_column("", overflow="ellipsis", no_wrap=True)
        for target, (mark, text) in self._rows.items():
            first_line = text.splitlines()[0] if text else ""
            style = {"ready": "green", "failed": "red", "waits": "yellow"}.get(mark, "")
            shown = Text(mark, style=style) if mark != "working" else Spinner("dots", "working")
            table.add_row(target.shown, shown, Text(first_line))
        return table


def make_display(targets: list[Target], pulse: Heartbeat) -> Display:
    """Live on a terminal, lines otherwise."""
    if sys.stdout.isatty():
        return Live(targets)
    widest = max((len(target.shown) for target in targets), default=0)
    return Lines(min(widest, _WIDEST), pulse)

"""The two ways progress is shown."""

import sys
from collections.abc import Mapping
from typing import Any

from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.progress import Display, Key
from captfctl.cli.settled import Standing, Verdict
from captfctl.model.core import Event

_MARKS = {
    Standing.READY: "ready",
    Standing.WORKING: "",
    Standing.WAITING: "waits",
    Standing.FAILED: "failed",
    Standing.LACKING: "cannot run here",
}


def name_of(key: Key) -> str:
    """How an object is called in output: as kubectl does, with a namespace that is not default."""
    namespace, name = key
    prefix = "" if namespace == "default" else f"{namespace}/"
    return f"terraformcluster/{prefix}{name}"


class Lines:
    """One line per event, for pipes and logs, and one after some silence."""

    def __init__(self, width: int, pulse: Heartbeat) -> None:
        self._width = width
        self._pulse = pulse

    def event(self, key: Key, event: Event) -> None:
        note = event.note.replace("\n", " ")
        self._line(key, f"{event.reason}: {note}" if note else event.reason)

    def standing(self, key: Key, verdict: Verdict, seconds: float) -> None:
        mark = _MARKS[verdict.standing]
        if mark:
            why = f": {verdict.why}" if verdict.why else f" after {seconds:.1f}s"
            self._line(key, f"{mark}{why}".replace("\n", " "))

    def waiting(self, verdicts: Mapping[Key, Verdict]) -> None:
        self._pulse.now_doing(still(verdicts))

    def close(self) -> None:
        self._pulse.now_doing("")

    def _line(self, key: Key, text: str) -> None:
        self._pulse.say(f"{name_of(key):<{self._width}}  {text}")


def still(verdicts: Mapping[Key, Verdict]) -> str:
    """What is waited for, in one line however many objects there are."""
    working = [key for key, found in verdicts.items() if not found.settled]
    if not working:
        return "waiting for a moment whether it lasts"
    first = working[0]
    text = f"{name_of(first)}  still working"
    if why := verdicts[first].why:
        text += f": {why}".replace("\n", " ")
    others = len(working) - 1
    return f"{text}; and {others} more of {len(verdicts)}" if others else text


class Live:
    """A table that is redrawn: one row per object, with its standing and its last event."""

    def __init__(self, keys: list[Key]) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._rows: dict[Key, tuple[str, str]] = dict.fromkeys(keys, ("", ""))
        self._console = Console()
        self._live: Any = RichLive(self._table(), console=self._console, refresh_per_second=8)
        self._live.start()

    def event(self, key: Key, event: Event) -> None:
        style = "red" if event.type == "Warning" else "none"
        self._print(f"[dim]{name_of(key)}[/dim]  ", f"{event.reason}: {event.note}", style)
        standing, _ = self._rows[key]
        self._rows[key] = (standing, event.reason)
        self._live.update(self._table())

    def standing(self, key: Key, verdict: Verdict, seconds: float) -> None:
        mark = _MARKS[verdict.standing] or "working"
        self._rows[key] = (mark, verdict.why or f"after {seconds:.1f}s")
        self._live.update(self._table())

    def waiting(self, verdicts: Mapping[Key, Verdict]) -> None:
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
        for key, (mark, text) in self._rows.items():
            first_line = text.splitlines()[0] if text else ""
            style = {"ready": "green", "failed": "red", "waits": "yellow"}.get(mark, "")
            shown = Text(mark, style=style) if mark != "working" else Spinner("dots", "working")
            table.add_row(name_of(key), shown, Text(first_line))
        return table


def make_display(keys: list[Key], pulse: Heartbeat) -> Display:
    """Live on a terminal, lines otherwise."""
    if sys.stdout.isatty():
        return Live(keys)
    return Lines(max((len(name_of(key)) for key in keys), default=0), pulse)

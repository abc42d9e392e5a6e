"""What a benchmark finds, and how it is shown.

A figure stands beside a yardstick measured in the same run: the machine may be slow or busy, the
ratio says what the product does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


class Missing(Exception):
    """A benchmark cannot run here; the message says what it needs and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What the figure is compared with, in the figure's unit."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value in `unit` (`ms`, `s`, `/s`, `MB`, `MB/s`, or empty for a count).

    `aim` is what the product wants to keep, in words, `kept` whether it does; None: no aim.
    """

    what: str
    value: float
    unit: str = ""
    yardstick: Yardstick | None = None
    aim: str = ""
    kept: bool | None = None

    @property
    def ratio(self) -> float | None:
        if self.yardstick is None or not self.yardstick.value:
            return None
        return self.value / self.yardstick.value


def at_most(what: str, value: float, unit: str, limit: float, **more: Yardstick) -> Figure:
    """A figure that must not be above `limit`."""
    aim = f"at most {_number(limit)} {unit}".rstrip()
    return Figure(what=what, value=value, unit=unit, aim=aim, kept=value <= limit, **more)


def at_least(what: str, value: float, unit: str, limit: float, **more: Yardstick) -> Figure:
    """A figure that must not be below `limit`."""
    aim = f"at least {_number(limit)} {unit}".rstrip()
    return Figure(what=what, value=value, unit=unit, aim=aim, kept=value >= limit, **more)


def at_most_times(what: str, value: float, unit: str, limit: float, yardstick: Yardstick) -> Figure:
    """A figure that must not be above `limit` times its yardstick."""
    return Figure(
        what=what,
        value=value,
        unit=unit,
        yardstick=yardstick,
        aim=f"at most {_number(limit)} x",
        kept=value <= limit * yardstick.value,
    )


Run = Callable[[], Iterator[Figure]]


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found. `missing`: why it did not run."""

    name: str
    figures: Sequence[Figure]
    missing: str = ""


def show(results: Sequence[Result], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (
        ("benchmark", "left"),
        ("what", "left"),
        ("figure", "right"),
        ("yardstick of the same run", "left"),
        ("its figure", "right"),
        ("ratio", "right"),
        ("aim", "left"),
        ("kept", "left"),
    ):
        table.add_column(title, justify="right" if justify == "right" else "left", no_wrap=True)
    for result in results:
        for figure in result.figures:
            table.add_row(result.name, *_cells(figure))
    console.print(table)
    for result in results:
        if result.missing:
            console.print(f"{result.name}: not measured: {result.missing}", highlight=False)


def _cells(figure: Figure) -> tuple[str, ...]:
    stick, ratio = figure.yardstick, figure.ratio
    return (
        figure.what,
        f"{_number(figure.value)} {figure.unit}".rstrip(),
        stick.name if stick else "",
        f"{_number(stick.value)} {figure.unit}".rstrip() if stick else "",
        f"{_number(ratio)} x" if ratio is not None else "",
        figure.aim,
        "" if figure.kept is None else "yes" if figure.kept else "NO",
    )


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    size = abs(value)
    if size == 0 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"

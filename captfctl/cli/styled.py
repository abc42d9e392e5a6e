"""Text with styles: in colours and as wide as the terminal on one, plain lines anywhere else.

rich is loaded on a terminal only: a command that is piped starts in less time without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.text import Text

GAP = 2
"""Blanks between columns."""


@dataclass(frozen=True, slots=True)
class Styled:
    """Some text in one of rich's styles."""

    text: str
    style: str = ""


class Line:
    """One line, of pieces with and without a style.

    A terminal breaks it where its right edge is; with `wrap` it is broken between words, after
    `indent` blanks.
    """

    def __init__(self, *pieces: str | Styled, wrap: bool = False, indent: int = 0) -> None:
        self.pieces = tuple(Styled(one) if isinstance(one, str) else one for one in pieces)
        self.wrap = wrap
        self.indent = indent

    @property
    def plain(self) -> str:
        """Without styles."""
        return " " * self.indent + "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two columns: what something is called, and what it is. A terminal folds the second one."""

    rows: Sequence[tuple[Styled, Styled]]
    indent: int = 0


def print_styled(parts: Iterable[Line | Pairs], file: TextIO) -> None:
    """Print lines and columns from top to bottom."""
    if file.isatty():
        _print_in_colours(parts, file)
    else:
        for part in parts:
            lines = _plain_pairs(part) if isinstance(part, Pairs) else (part.plain,)
            file.writelines(f"{line.rstrip()}\n" for line in lines)
    file.flush()


def cell_width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # which characters are wide is a large table

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with blanks after it, to that width."""
    return text + " " * (width - cell_width(text))


def _plain_pairs(pairs: Pairs) -> Iterable[str]:
    width = max((cell_width(name.text) for name, _ in pairs.rows), default=0) + GAP
    for name, value in pairs.rows:
        yield f"{' ' * pairs.indent}{padded(name.text, width)}{value.text}"


def _print_in_colours(parts: Iterable[Line | Pairs], file: TextIO) -> None:
    from rich.console import Console
    from rich.padding import Padding

    console = Console(file=file, highlight=False)
    for part in parts:
        if isinstance(part, Pairs):
            console.print(Padding(_grid(part), (0, 0, 0, part.indent)))
        elif part.wrap and part.indent:
            console.print(Padding(_text(*part.pieces), (0, 0, 0, part.indent)))
        else:
            text = _text(Styled(" " * part.indent), *part.pieces)
            console.print(text, soft_wrap=not part.wrap)


def _grid(pairs: Pairs) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.rows:
        grid.add_row(_text(name), _text(value))
    return grid


def _text(*pieces: Styled) -> "Text":
    from rich.text import Text

    return Text.assemble(*((piece.text, piece.style) for piece in pieces))

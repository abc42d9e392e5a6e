"""The documentation's pages and their headings, and the comments of the code that cite them."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
CODE = ("captfctl", "runner", "tests", "benchmarks", "deploy", "examples", "completions")

_ANYTHING = re.compile("")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CITATION = re.compile(r"(?<![\w/.-])([a-z][a-z-]*\.md): ([A-Z][^;.()]*)")
_OTHER_FORM = re.compile(r"\bdocs/reference/[\w-]+\.md(?:, \"|#)")


class Citation(NamedTuple):
    """`(runs.md: Starting a Job)` in a comment or a docstring."""

    page: str
    heading: str


class Remark(NamedTuple):
    """A docstring, or comment lines that follow each other, as one line of text."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    @property
    def citations(self) -> list[Citation]:
        """Every citation in it."""
        return [Citation(page, heading.strip()) for page, heading in _CITATION.findall(self.text)]

    @property
    def cites_in_another_form(self) -> bool:
        """Whether it cites a heading in a form that `citations` does not find."""
        return bool(_OTHER_FORM.search(self.text))


def headings(page: Path) -> list[str]:
    """The headings of a page, in their order."""
    return _HEADING.findall(_FENCE.sub("", page.read_text()))


def anchor(heading: str) -> str:
    """What a link to a heading says after `#`."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


def python_files() -> list[Path]:
    """Every Python file of the repository."""
    return sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py"))


def remarks(file: Path, about: re.Pattern[str] = _ANYTHING) -> Iterator[Remark]:
    """What the file says to its readers. Comments are left out where none of their lines is
    `about` it: to find comments takes most of the time."""
    text = file.read_text()
    yield from _docstrings(file, text)
    after_hash = (line.partition("#")[2] for line in text.splitlines())
    if any(about.search(line) for line in after_hash if line):
        yield from _comments(file, text)


def _docstrings(file: Path, text: str) -> Iterator[Remark]:
    """Every string that stands alone: docstrings, and those below fields and constants."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield Remark(file, node.lineno, " ".join(said.split()))


def _comments(file: Path, text: str) -> Iterator[Remark]:
    first, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        number = token.start[0]
        if number != last + 1 and lines:
            yield Remark(file, first, " ".join(lines))
            lines = []
        first = first if lines else number
        last = number
        lines.append(token.string.lstrip("#").strip())
    if lines:
        yield Remark(file, first, " ".join(lines))

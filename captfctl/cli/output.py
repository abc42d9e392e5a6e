"""How results are printed: a table for people, json, yaml and names for programs."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from captfctl.cli.styled import cell_width, padded
from captfctl.errors import RefusedByRule

_BETWEEN = 3
"""Blanks after a table's column, as kubectl leaves."""

Document = dict[str, Any]


class Format(StrEnum):
    """What `--output` can ask for."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def escaped(text: str, keep: str = "") -> str:
    """`text` with everything in it made visible that a terminal would act on: escape sequences,
    line breaks, marks that reverse the direction of what follows."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def resource_count(count: int) -> str:
    """So many resources, in words."""
    return f"{count} resource{'s' * (count != 1)}"


def refusal_document(refused: RefusedByRule) -> Document:
    """A refusal, for programs."""
    refusal = {"number": int(refused.rule), "text": str(refused)}
    return {"result": "refused", "refusal": refusal}


class TextFormat(StrEnum):
    """What `--output` can ask for where there is one answer, not a list."""

    TEXT = "text"
    JSON = "json"


def kubectl_patch(plural: str, namespace: str, name: str, patch: Document) -> str:
    """The command that makes the same change with kubectl, in two lines for a shell."""
    text = shlex.quote(json.dumps(patch, separators=(",", ":")))
    return f"kubectl patch {plural} {name} -n {namespace} --type=merge \\\n    -p {text}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `document` is what json and yaml show of it, `name` what `-o name`."""

    cells: Sequence[str]
    document: Document
    name: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows under column headings. Columns named in `wide` are shown by `-o wide` only."""

    columns: Sequence[str]
    rows: list[Row]
    wide: frozenset[str] = field(default_factory=frozenset)


def show(listing: Listing, format_: Format, *, single: bool = False) -> None:
    """Print to standard output. `single`: one row was asked for by name, so no list around it."""
    match format_:
        case Format.NAME:
            text = "".join(f"{row.name}\n" for row in listing.rows)
        case Format.JSON:
            text = json.dumps(_document(listing, single), indent=2, ensure_ascii=False) + "\n"
        case Format.YAML:
            from captfctl.kubeyaml import to_yaml

            text = to_yaml(_document(listing, single))
        case _:
            text = plain_table(listing, wide=format_ is Format.WIDE)
    sys.stdout.write(text)
    sys.stdout.flush()


def _document(listing: Listing, single: bool) -> Any:
    documents = [row.document for row in listing.rows]
    return documents[0] if single and len(documents) == 1 else documents


def plain_table(listing: Listing, *, wide: bool = False) -> str:
    """Columns under headings in capitals, nothing cut and nothing coloured."""
    shown = [i for i, name in enumerate(listing.columns) if wide or name not in listing.wide]
    lines = [[listing.columns[index].upper() for index in shown]]
    lines += [[escaped(row.cells[index]) for index in shown] for row in listing.rows]
    widths = [max(map(cell_width, cells)) + _BETWEEN for cells in zip(*lines, strict=True)]
    return "".join("".join(map(padded, cells, widths)).rstrip() + "\n" for cells in lines)

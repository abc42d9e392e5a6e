"""How backups, and a restore that is proposed, look: for people, and for programs as a document.

Nothing of a state is shown but the addresses of its resources.
"""

from collections.abc import Iterator, Sequence
from typing import TextIO

from captfctl.cli.output import Document, Listing, Row, escaped, plain_table, resource_count
from captfctl.cli.styled import GAP, Line, Styled, print_styled
from captfctl.model.meta import seconds_stamp
from captfctl.reconcile.restore_list import Listed
from captfctl.reconcile.restore_request import Proposal
from captfctl.reconcile.restore_situation import Loaded, Situation
from captfctl.terraform.state.contents import Contents

_SHORT = 8
_ADDRESSES = 20
_UNKNOWN = "?"
_RED = "red"
_YELLOW = "yellow"


def print_list(shown: str, now: Situation, backups: Sequence[Listed], file: TextIO) -> None:
    """Newest first. On a terminal two lines for each in 80 columns, else one for each."""
    print_styled(_list_heading(shown, now), file)
    if not backups:
        print_styled([Line("There are no backups of its state.")], file)
    elif file.isatty():
        print_styled([Line(), *_two_lines_each(backups)], file)
    else:
        file.write(f"\n{plain_table(_listing(backups))}")
        file.flush()


def _list_heading(shown: str, now: Situation) -> Iterator[Line]:
    yield Line(Styled(shown, "bold"), f": {escaped(_state(now))}")
    if now.pending:
        asked = f"A restore of serial {escaped(now.pending[:64])} is asked for."
        yield Line(Styled(asked, _YELLOW), wrap=True)


def _state(now: Situation) -> str:
    if not isinstance(now.live, Contents):
        return now.live.message
    state = now.live.state
    resources = resource_count(len(now.live.addresses))
    return f"state of serial {state.serial}, {resources}, lineage {state.lineage[:_SHORT]}"


_COLUMNS = ("Serial", "Taken", "Size", "Resources", "Forgets", "Lineage", "Digest")
_RIGHT = frozenset({"Serial", "Size", "Resources", "Forgets"})


def _two_lines_each(backups: Sequence[Listed]) -> Iterator[Line]:
    rows = [_cells(one, short=True) for one in backups]
    headings = [column.upper() for column in _COLUMNS]
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    yield _line(" ", headings, widths, "dim")
    for one, cells in zip(backups, rows, strict=True):
        style = "bold green" if one.current else _RED if one.loaded.damage else ""
        yield _line("*" if one.current else " ", cells, widths, style)
        yield Line(Styled(", ".join(_notes(one)), "dim"), wrap=True, indent=4)


def _line(mark: str, cells: Sequence[str], widths: Sequence[int], style: str) -> Line:
    aligned = (
        cell.rjust(width) if column in _RIGHT else cell.ljust(width)
        for column, cell, width in zip(_COLUMNS, cells, widths, strict=True)
    )
    return Line(Styled((" " * GAP).join((mark, *aligned)), style))


def _listing(backups: Sequence[Listed]) -> Listing:
    columns = (*_COLUMNS, "Secrets", "Job", "Notes")
    return Listing(
        columns,
        [
            Row(
                [
                    *_cells(one, short=False),
                    str(len(one.loaded.backup.secrets)),
                    escaped(one.loaded.backup.job) or "-",
                    escaped("; ".join(one.marks)) or "-",
                ],
                {},
                one.loaded.backup.name,
            )
            for one in backups
        ],
    )


def _notes(one: Listed) -> Iterator[str]:
    backup = one.loaded.backup
    yield from map(escaped, one.marks)
    if backup.job:
        yield f"by Job {escaped(backup.job)}"
    if backup.count > 1:
        yield f"in {backup.count} Secrets"


def _cells(one: Listed, *, short: bool) -> list[str]:
    backup = one.loaded.backup
    stamp = seconds_stamp(backup.taken_at)
    return [
        str(backup.serial) if backup.serial else _UNKNOWN,
        f"{stamp[:16].replace('T', ' ')}Z" if short and stamp else stamp or _UNKNOWN,
        _size(backup.bytes),
        _UNKNOWN if one.loaded.damage else str(len(one.loaded.addresses)),
        _UNKNOWN if one.forgets is None else str(one.forgets),
        escaped(backup.lineage[:_SHORT]) or _UNKNOWN,
        escaped(backup.digest[:_SHORT]) or _UNKNOWN,
    ]


def _size(count: int) -> str:
    if not count:
        return _UNKNOWN
    kib = 1024
    if count < kib:
        return f"{count} B"
    return f"{count / kib:.0f} KiB" if count < kib * kib else f"{count / kib / kib:.1f} MiB"


def print_proposal(shown: str, now: Situation, proposal: Proposal, file: TextIO) -> None:
    """What would be put back, and what nothing manages any more afterwards."""
    print_styled(_proposal(shown, now, proposal), file)


def _proposal(shown: str, now: Situation, proposal: Proposal) -> Iterator[Line]:
    serial = proposal.loaded.backup.serial
    yield Line(Styled(shown, "bold"), f" goes back to the backup of serial {serial}")
    for label, value in _facts(now, proposal):
        yield Line(Styled(f"  {label:<9}", "dim"), escaped(value))
    yield from _forgotten(proposal.forgets)
    if proposal.returns:
        what = f"{resource_count(len(proposal.returns))} only in the backup, made again where gone"
        yield from _addresses("returns", what, proposal.returns)
    for warning in proposal.warnings:
        yield Line(Styled("Warning: ", _YELLOW), escaped(warning))


def _facts(now: Situation, proposal: Proposal) -> Iterator[tuple[str, str]]:
    loaded = proposal.loaded
    backup = loaded.backup
    by = f" by Job {backup.job}" if backup.job else ""
    yield "taken", f"{seconds_stamp(backup.taken_at)}{by}"
    secrets = f"{backup.count} Secret{'s' * (backup.count != 1)}"
    yield "content", f"{resource_count(len(loaded.addresses))}, {_size(backup.bytes)} in {secrets}"
    yield "", f"lineage {backup.lineage[:_SHORT]}, digest {backup.digest[:_SHORT]}"
    yield "now", _state(now)


def _forgotten(forgotten: Sequence[str] | None) -> Iterator[Line]:
    if forgotten is None:
        return
    count = len(forgotten)
    what = "that go on, and nothing manages them" if count > 1 else _ONE_GOES_ON
    told = f"{resource_count(count)} {what}" if count else "nothing"
    yield from _addresses("forgets", told, forgotten, _YELLOW if count else "")


_ONE_GOES_ON = "that goes on, and nothing manages it"


def _addresses(label: str, told: str, addresses: Sequence[str], style: str = "") -> Iterator[Line]:
    yield Line(Styled(f"  {label:<9}", "dim"), Styled(told, style))
    limit = len(addresses) if len(addresses) == _ADDRESSES + 1 else _ADDRESSES
    for address in addresses[:limit]:
        yield Line(f"    {escaped(address)}")
    if len(addresses) > limit:
        more = f"    … and {len(addresses) - limit} more; -o json lists them all"
        yield Line(Styled(more, "dim"))


def list_document(now: Situation, backups: Sequence[Listed]) -> Document:
    """The backups and the state, for programs."""
    return {
        "state": _state_document(now),
        "requested": now.pending,
        "backups": [
            _backup_document(one.loaded)
            | {"current": one.current, "forgets": one.forgets, "marks": list(one.marks)}
            for one in backups
        ],
    }


def document_of(now: Situation, proposal: Proposal) -> Document:
    """A proposal, for programs."""
    forgets, returns = proposal.forgets, proposal.returns
    return {
        "state": _state_document(now),
        "backup": _backup_document(proposal.loaded),
        "forgets": None if forgets is None else list(forgets),
        "returns": None if returns is None else list(returns),
        "warnings": list(proposal.warnings),
    }


def _state_document(now: Situation) -> Document:
    if not isinstance(now.live, Contents):
        return {"problem": now.live.problem.value, "message": now.live.message}
    state = now.live.state
    return {
        "serial": state.serial,
        "lineage": state.lineage,
        "digest": state.digest,
        "resources": len(now.live.addresses),
    }


def _backup_document(loaded: Loaded) -> Document:
    backup = loaded.backup
    return {
        "name": backup.name,
        "serial": backup.serial,
        "takenAt": seconds_stamp(backup.taken_at),
        "bytes": backup.bytes,
        "chunks": backup.count,
        "resources": None if loaded.damage else len(loaded.addresses),
        "lineage": backup.lineage,
        "digest": backup.digest,
        "job": backup.job,
        "complete": backup.complete,
        "damage": loaded.damage,
    }

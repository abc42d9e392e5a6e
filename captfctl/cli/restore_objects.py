"""What `captfctl restore` reads, asks and prints."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from captfctl.cli.confirm import answer_to, has_terminal
from captfctl.cli.connect import cluster_door
from captfctl.cli.options import check_files_alone, data_dir
from captfctl.cli.output import Document, escaped, kubectl_patch, refusal_document
from captfctl.cli.restore_text import (
    document_of,
    list_document,
    print_list,
    print_proposal,
)
from captfctl.cli.targets import OURS, Named, named
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Door
from captfctl.errors import InputError
from captfctl.model.kinds import KINDS
from captfctl.reconcile.restore_asking import Outcome, Place, Result, ask, cancel
from captfctl.reconcile.restore_list import list_backups
from captfctl.reconcile.restore_request import Proposal, Refused, Wish
from captfctl.reconcile.restore_situation import Situation
from captfctl.terraform.state.backups import parse_serial


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line, as it was written."""

    name: str
    namespace: str
    list_backups: bool
    serial: str
    latest: bool
    cancel: bool
    allow_lineage_change: bool
    replace: bool
    yes: bool
    dry_run: bool
    files: list[str]


def restore(asked: Asked, data: Path | None, kubeconfig: Path | None, *, as_json: bool) -> None:
    """Raises `InputError` for a command line that makes no sense, `Refused` when nothing is asked
    for."""
    target, wish, clock = named(asked.name, asked.namespace, OURS), _wish(asked), SystemClock()
    screen = _Screen(target, as_json=as_json)
    with _door(asked, data, kubeconfig, clock) as door:
        place = Place(door, KINDS[target.resource.kind], target.namespace, target.name)
        try:
            _do(place, asked, wish, screen)
        except Refused as refused:
            screen.refuse(refused)
            raise


def _do(place: Place, asked: Asked, wish: Wish, screen: "_Screen") -> None:
    dry_run = asked.dry_run or bool(asked.files)
    if asked.list_backups:
        screen.list(place.look())
    elif asked.cancel:
        screen.end(cancel(place, dry_run=dry_run))
    else:
        screen.end(ask(place, wish, screen, yes=asked.yes, dry_run=dry_run))


@contextmanager
def _door(asked: Asked, data: Path | None, kubeconfig: Path | None, clock: Clock) -> Iterator[Door]:
    if not asked.files:
        with cluster_door(kubeconfig, data_dir(data), clock) as door:
            yield door
        return
    check_files_alone(data, kubeconfig)
    from captfctl.cli.described_input import door_of_files

    yield door_of_files(asked.files, clock)


def _wish(asked: Asked) -> Wish:
    """Raises `InputError`."""
    modes = {
        "--list": asked.list_backups,
        "--serial": bool(asked.serial),
        "--latest": asked.latest,
        "--cancel": asked.cancel,
    }
    chosen = [flag for flag, given in modes.items() if given]
    if len(chosen) != 1:
        raise InputError(
            f"{' and '.join(chosen)} exclude each other" if chosen else "say what to do",
            do="give exactly one of --list, --serial N, --latest and --cancel",
        )
    serial = parse_serial(asked.serial) if asked.serial else None
    if asked.serial and serial is None:
        raise InputError(
            f"--serial {escaped(asked.serial[:64])} is no serial",
            do="give a whole number of 1 or more, one that --list shows",
        )
    return Wish(
        serial=serial,
        allow_lineage_change=asked.allow_lineage_change,
        replace=asked.replace,
    )


class _Screen:
    """What a person sees of a request. With `as_json` standard output has one document, and what
    would be restored is shown as text only where somebody is asked about it."""

    def __init__(self, target: Named, *, as_json: bool) -> None:
        self._target = target
        self._as_json = as_json
        self._shown: tuple[Situation, Proposal] | None = None

    def list(self, now: Situation) -> None:
        backups = list_backups(now)
        if self._as_json:
            self._print({"result": "listed", **list_document(now, backups)})
        else:
            print_list(self._target.shown, now, backups, sys.stdout)

    def show(self, now: Situation, proposal: Proposal) -> None:
        self._shown = (now, proposal)
        if not self._as_json:
            print_proposal(self._target.shown, now, proposal, sys.stdout)

    def confirm(self, now: Situation) -> bool | None:
        shown = sys.stderr if self._as_json else sys.stdout
        if self._as_json and self._shown is not None and has_terminal(shown):
            print_proposal(self._target.shown, *self._shown, shown)
        name = now.obj.metadata.name
        answer = answer_to(f"Type {name} to put this state back: ", shown)
        return None if answer is None else answer == name

    def end(self, outcome: Outcome) -> None:
        if not self._as_json:
            print(_last_words(self._target, outcome))
            return
        more: Document = document_of(*self._shown) if self._shown is not None else {}
        self._print(
            {"result": outcome.result.value, "serial": outcome.serial}
            | more
            | ({"patch": outcome.patch} if outcome.patch else {})
        )

    def refuse(self, refused: Refused) -> None:
        """Only for programs: a person is told as of any error."""
        if self._as_json:
            self._print(refusal_document(refused))

    def _print(self, document: Document) -> None:
        target = self._target
        about = {
            "kind": target.resource.kind,
            "namespace": target.namespace,
            "name": target.name,
        }
        print(json.dumps({**about, **document}, indent=2))


def _last_words(target: Named, outcome: Outcome) -> str:
    serial = escaped(outcome.serial)
    match outcome.result:
        case Result.REQUESTED:
            return (
                f"{target.shown}: a restore of serial {serial} is asked for; the condition "
                "RestoreJobSucceeded tells what became of it"
            )
        case Result.ALREADY_REQUESTED:
            return f"{target.shown}: serial {serial} is asked for already; nothing was written"
        case Result.NOTHING_TO_CANCEL:
            return f"{target.shown}: no restore is asked for; nothing was written"
        case Result.CANCELED:
            runs = f"; Job {outcome.job} runs all the same, and is not stopped"
            end = runs if outcome.job else ""
            return f"{target.shown}: serial {serial} is not asked for any more{end}"
        case Result.DRY_RUN:
            command = kubectl_patch(
                target.resource.plural, target.namespace, target.name, outcome.patch
            )
            return f"Nothing was written. What would be:\n\n  {command}"

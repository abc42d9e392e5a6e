"""How `captfctl delete` goes about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captfctl.cli.connect import cluster_door
from captfctl.cli.deletion import as_json, refuse_protected, settle_deletion, show_previews
from captfctl.cli.options import data_dir, timeout_seconds
from captfctl.cli.output import TextFormat
from captfctl.cli.targets import OURS, OWNERS, Named, deleted_first, named
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import Conflict, NotFound
from captfctl.errors import CaptfError, InputError
from captfctl.reconcile.deletion_preview import Preview, preview_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    name: str
    files: list[str]
    namespace: str
    local: bool
    kubeconfig: Path | None
    data: Path | None
    images: Path | None
    yes: bool
    dry_run: bool
    output: TextFormat
    timeout: str


@dataclass(frozen=True, slots=True)
class Things:
    """What is deleted, in order; `last` once the infrastructure of the `first` is gone. `door`
    holds what the files describe; None where an object is named."""

    first: Sequence[Named]
    last: Sequence[Named] = ()
    door: Door | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What there was to delete when it was told and asked about: what would become of it, and the
    UID of each of the objects that existed."""

    previews: Sequence[Preview] = ()
    uids: Mapping[Named, str] = field(default_factory=dict)


class Replaced(CaptfError):
    """Another object has the name by now."""

    code = "Replaced"


def delete(wish: Wish) -> int:
    """Returns the exit code (docs/exit-codes.md).

    Raises `InputError`, `NotFound` for a named object that does not exist, `Protected` and
    `NotConfirmed`; nothing was deleted then. Raises `Replaced` before it deletes what nobody was
    asked about. Raises `Interrupted` when the process is told to end,
    after the runs have been ended in order.
    """
    _check(wish)
    clock = SystemClock()
    things = _things(wish, clock)
    if wish.dry_run:
        with _where_states_are(wish, things, clock) as door:
            _show(look_at(door, things).previews, wish.output)
        return 0
    if wish.kubeconfig is not None:
        with cluster_door(wish.kubeconfig, data_dir(wish.data), clock) as door:
            seen = look_at(door, things)
            settle_deletion(seen.previews, yes=wish.yes)
            for thing in things.first:
                delete_seen(door, thing, seen)
                print(f"{thing.shown} is being deleted")
        return 0
    from captfctl.cli.delete_here import delete_here  # loads a whole control plane

    return delete_here(wish, things, clock)


def _check(wish: Wish) -> None:
    if bool(wish.name) == bool(wish.files):
        raise InputError("say what to delete", do="name one object as KIND/NAME, or files with -f")
    if wish.local and wish.kubeconfig is not None:
        raise InputError("--local and --kubeconfig exclude each other")
    if wish.files and wish.kubeconfig is not None:
        raise InputError(
            "files are deleted on this machine only",
            do="on a cluster use kubectl delete -f, or name the object as KIND/NAME",
        )
    if wish.files and not wish.local and not wish.dry_run:
        raise InputError(
            "say where to delete",
            do="--local deletes on this machine, --dry-run only says what would be destroyed; on a "
            "cluster use kubectl delete -f",
        )
    if wish.output is TextFormat.JSON and not wish.dry_run:
        raise InputError("-o json is for --dry-run")
    timeout_seconds(wish.timeout)


def _things(wish: Wish, clock: Clock) -> Things:
    if wish.name:
        return Things([named(wish.name, wish.namespace, (*OURS, *OWNERS))])
    from captfctl.cli.described_input import known_kinds, read_objects

    store = known_kinds(clock)
    described = read_objects(wish.files, store)

    def of(items: Iterable[Any]) -> list[Named]:
        return [Named(item.resource, item.namespace, item.name) for item in items]

    return Things(of(deleted_first(described)), of(reversed(described.objects)), store.door())


@contextmanager
def _where_states_are(wish: Wish, things: Things, clock: Clock) -> Iterator[Door]:
    if things.door is not None and not wish.local:
        yield things.door
        return
    with cluster_door(wish.kubeconfig, data_dir(wish.data), clock) as door:
        yield door


def look_at(door: Door, things: Things) -> Seen:
    """Raises `NotFound` for a named object that does not exist."""
    uids = {}
    for thing in things.first:
        try:
            found = door.get(thing.resource.metadata_only(), thing.name, thing.namespace)
        except NotFound:
            if things.door is None:
                raise
            continue
        uids[thing] = found.metadata.uid
    return Seen(preview_all(door, [(thing.resource, thing.key) for thing in things.first]), uids)


def delete_seen(door: Door, thing: Named, seen: Seen) -> None:
    """Delete the very object that was asked about. Raises `NotFound` when it is gone, `Replaced`
    when another one has its name."""
    try:
        door.delete(thing.resource, thing.name, thing.namespace, uid=seen.uids[thing])
    except Conflict as problem:
        raise Replaced(
            f"{thing.shown} is another object by now, and is not deleted",
            why="the one that was shown is gone, and one of its name was created meanwhile",
            do="run the command again: it shows what is there now",
        ) from problem


def _show(previews: Sequence[Preview], output: TextFormat) -> None:
    if output is TextFormat.JSON:
        print(as_json(previews))
        return
    show_previews(previews)
    refuse_protected(previews)

"""How `captfctl delete` goes about it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from captfctl.cli.connect import cluster_door, exists_here, local_door
from captfctl.cli.deletion import as_json, refuse_protected, settle_deletion, show_previews
from captfctl.cli.described_input import known_kinds, read_objects
from captfctl.cli.following import check_going_on, exit_code, shown, summarize
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.local_session import local_session
from captfctl.cli.modules import image_table
from captfctl.cli.options import data_dir, timeout_seconds
from captfctl.cli.output import TextFormat
from captfctl.cli.progress import Follower
from captfctl.cli.signals import end_requested
from captfctl.cli.targets import OURS, OWNERS, Named, Target, deleted_first, named, target_of
from captfctl.clock import Clock, SystemClock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import NotFound
from captfctl.errors import InputError
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
class _Things:
    """What is deleted, in order; `last` once the infrastructure of the `first` is gone. `door`
    holds what the files describe; None where an object is named."""

    first: Sequence[Named]
    last: Sequence[Named] = ()
    door: Door | None = None


def delete(wish: Wish) -> int:
    """Returns the exit code (docs/exit-codes.md).

    Raises `InputError`, `NotFound` for a named object that does not exist, `Protected` and
    `NotConfirmed`; nothing was deleted then. Raises `Interrupted` when the process is told to end,
    after the runs have been ended in order.
    """
    _check(wish)
    clock = SystemClock()
    things = _things(wish, clock)
    if wish.dry_run:
        with _where_states_are(wish, things, clock) as door:
            _show(_previews(door, things), wish.output)
        return 0
    if wish.kubeconfig is not None:
        with cluster_door(wish.kubeconfig, data_dir(wish.data), clock) as door:
            settle_deletion(_previews(door, things), yes=wish.yes)
            for thing in things.first:
                door.delete(thing.resource, thing.name, thing.namespace)
                print(f"{thing.shown} is being deleted")
        return 0
    return _delete_here(wish, things, clock)


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


def _things(wish: Wish, clock: Clock) -> _Things:
    if wish.name:
        return _Things([named(wish.name, wish.namespace, (*OURS, *OWNERS))])
    store = known_kinds(clock)
    described = read_objects(wish.files, store)

    def of(items: Iterable[Any]) -> list[Named]:
        return [Named(item.resource, item.namespace, item.name) for item in items]

    return _Things(of(deleted_first(described)), of(reversed(described.objects)), store.door())


@contextmanager
def _where_states_are(wish: Wish, things: _Things, clock: Clock) -> Iterator[Door]:
    if things.door is not None and not wish.local:
        yield things.door
        return
    with cluster_door(wish.kubeconfig, data_dir(wish.data), clock) as door:
        yield door


def _previews(door: Door, things: _Things) -> list[Preview]:
    """Raises `NotFound` for a named object that does not exist."""
    if things.door is None:
        (thing,) = things.first
        door.get(thing.resource, thing.name, thing.namespace)
    return preview_all(door, [(thing.resource, thing.key) for thing in things.first])


def _show(previews: Sequence[Preview], output: TextFormat) -> None:
    if output is TextFormat.JSON:
        print(as_json(previews))
        return
    show_previews(previews)
    refuse_protected(previews)


def _delete_here(wish: Wish, things: _Things, clock: Clock) -> int:
    home, table = data_dir(wish.data), image_table(wish.images)
    previews: list[Preview] = []
    if things.door is None or exists_here(home):
        with local_door(home, clock) as door:
            previews = _previews(door, things)
        settle_deletion(previews, yes=wish.yes)
    followed = _followed(things, previews)
    ending = end_requested()
    check = partial(check_going_on, ending, home)
    with Heartbeat(clock) as pulse, local_session(home, table, clock, ending, pulse) as door:
        with shown(followed, pulse) as display:
            follower = Follower(door, followed, clock, display, check)
            with pulse.doing("deleting the objects"):
                _delete(door, things.first, pulse)
            left = follower.until_gone(timeout_seconds(wish.timeout))
        summarize(left)
        if not left:
            _delete(door, things.last, pulse)
    return exit_code(left.values())


def _followed(things: _Things, previews: Sequence[Preview]) -> list[Target]:
    """Those that were described and those that go with them, clusters first."""
    own = [target for thing in things.first if (target := target_of(thing)) is not None]
    along = [Target(one.kind, one.namespace, one.name) for one in previews]
    return list(dict.fromkeys([*along, *own]))


def _delete(door: Door, things: Iterable[Named], pulse: Heartbeat) -> None:
    for thing in things:
        try:
            door.delete(thing.resource, thing.name, thing.namespace)
        except NotFound:
            continue
        pulse.say(f"{thing.resource.kind.lower()}/{thing.name} deleted")

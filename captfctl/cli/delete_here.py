"""`captfctl delete` in the local control plane: until the infrastructure is gone."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from captfctl.cli.connect import exists_here, local_door
from captfctl.cli.delete_objects import Seen, Things, Wish, delete_seen, look_at
from captfctl.cli.deletion import settle_deletion
from captfctl.cli.following import check_going_on, exit_code, shown, summarize
from captfctl.cli.heartbeat import Heartbeat
from captfctl.cli.local_session import local_session
from captfctl.cli.modules import image_table
from captfctl.cli.options import data_dir, timeout_seconds
from captfctl.cli.progress import Follower
from captfctl.cli.signals import end_requested
from captfctl.cli.targets import Named, Target, target_of
from captfctl.clock import Clock
from captfctl.cluster.errors import NotFound
from captfctl.reconcile.deletion_preview import Preview


def delete_here(wish: Wish, things: Things, clock: Clock) -> int:
    """Returns the exit code (docs/exit-codes.md)."""
    home, table = data_dir(wish.data), image_table(wish.images)
    seen = Seen()
    if things.door is None or exists_here(home):
        with local_door(home, clock) as door:
            seen = look_at(door, things)
        settle_deletion(seen.previews, yes=wish.yes)
    followed = _followed(things, seen.previews)
    ending = end_requested()
    check = partial(check_going_on, ending, home)
    with Heartbeat(clock) as pulse, local_session(home, table, clock, ending, pulse) as door:
        with shown(followed, pulse) as display:
            follower = Follower(door, followed, clock, display, check)
            with pulse.doing("deleting the objects"):
                for thing in seen.uids:
                    _tell_deleted(pulse, thing, partial(delete_seen, door, thing, seen))
            left = follower.until_gone(timeout_seconds(wish.timeout))
        summarize(left)
        if not left:
            for thing in things.last:
                where = (thing.resource, thing.name, thing.namespace)
                _tell_deleted(pulse, thing, partial(door.delete, *where))
    return exit_code(left.values())


def _followed(things: Things, previews: Sequence[Preview]) -> list[Target]:
    """Those that were described and those that go with them, clusters first."""
    own = [target for thing in things.first if (target := target_of(thing)) is not None]
    along = [Target(one.kind, one.namespace, one.name) for one in previews]
    return list(dict.fromkeys([*along, *own]))


def _tell_deleted(pulse: Heartbeat, thing: Named, delete: Callable[[], None]) -> None:
    """Nothing to tell of what is gone already."""
    with suppress(NotFound):
        delete()
        pulse.say(f"{thing.resource.kind.lower()}/{thing.name} deleted")

"""The backups of an object, as a person chooses from them."""

from collections.abc import Iterator
from dataclasses import dataclass

from captfctl.reconcile.restore_situation import Loaded, Situation
from captfctl.terraform.state.backups import requested_serial
from captfctl.terraform.state.contents import Contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One backup of the list. `forgets` None: there is no state to compare with. `marks` in words:
    what it is to the object now."""

    loaded: Loaded
    forgets: int | None
    current: bool
    marks: tuple[str, ...]


def list_backups(now: Situation) -> list[Listed]:
    """Every backup, newest first, each read and compared with the state."""
    return [_listed(now, now.load(backup)) for backup in now.backups]


def _listed(now: Situation, loaded: Loaded) -> Listed:
    forgotten = now.forgotten(loaded)
    backup, live = loaded.backup, now.live
    current = isinstance(live, Contents) and live.state.digest == backup.digest
    return Listed(
        loaded=loaded,
        forgets=None if forgotten is None else len(forgotten),
        current=current,
        marks=tuple(_marks(now, loaded, current=current)),
    )


def _marks(now: Situation, loaded: Loaded, *, current: bool) -> Iterator[str]:
    backup, live = loaded.backup, now.live
    if current:
        yield "current"
    if isinstance(live, Contents):
        if live.state.serial == backup.serial and not current:
            yield "the state has its serial and another content"
        if live.state.lineage != backup.lineage:
            yield "other lineage"
    if requested_serial(now.obj.metadata) == backup.serial:
        yield "requested"
    if now.obj.status.last_restored_serial == backup.serial:
        yield "restored or tried last"
    if backup.defect:
        yield f"incomplete: {backup.defect}"
    elif loaded.damage:
        yield f"damaged: {loaded.damage}"

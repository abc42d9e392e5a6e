"""People who ask for restores, of states that were replaced and of some that were not."""

import random

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.conditions import FALSE, Type, find
from captfctl.model.kinds import Kind
from captfctl.model.owner import Owner
from captfctl.model.terraform import TerraformObject
from captfctl.terraform.state.backups import newest_complete, read_backups
from tests.simulation.course import Broken
from tests.simulation.workers import OWN


class Restores:
    """How often a restore was asked for, and how often a run pushed a backup, by state suffix."""

    def __init__(self, door: Door, rng: random.Random) -> None:
        self._door, self._rng = door, rng
        self._asked: dict[str, int] = {}
        self._pushed: dict[str, int] = {}

    def ask(self, kind: Kind, obj: TerraformObject, *, cluster: str) -> int:
        """Ask for the backup that a person would choose; its serial, 0 where there is none or one
        is asked for already."""
        if keys.RESTORE_STATE in obj.metadata.annotations:
            return 0
        owner = Owner(kind.name, *obj.key, obj.metadata.uid, cluster)
        serial = self._newest_good(owner)
        if serial:
            self._asked[owner.suffix] = self._asked.get(owner.suffix, 0) + 1
            obj.metadata.annotations[keys.RESTORE_STATE] = str(serial)
            self._door.update(OWN[kind], obj)
        return serial

    def _newest_good(self, owner: Owner) -> int:
        """The newest with resources that its serial means: of several, the newest is restored."""
        backups = read_backups(self._door, owner)
        good = (
            backup.serial
            for backup in backups
            if backup.complete and backup.resources and not backup.replaced
            if newest_complete(backups, backup.serial) is backup
        )
        return next(good, 0)

    def take_back(self, kind: Kind, obj: TerraformObject) -> str:
        """Take the request back: before it begins, or after it failed, so that it can be made
        again; what was asked for, empty for nothing."""
        asked = obj.metadata.annotations.pop(keys.RESTORE_STATE, "")
        if asked:
            self._door.update(OWN[kind], obj)
        return asked

    def failed(self, obj: TerraformObject) -> bool:
        """Whether the one that is asked for failed or was refused: none is repeated by itself."""
        told = find(obj.status.conditions, Type.RESTORE_JOB_SUCCEEDED)
        asked = keys.RESTORE_STATE in obj.metadata.annotations
        return asked and told is not None and told.status == FALSE

    def pushed(self, suffix: str) -> None:
        """A run pushed a backup: each request is answered once."""
        count = self._pushed[suffix] = self._pushed.get(suffix, 0) + 1
        if count > self._asked.get(suffix, 0):
            raise Broken(f"{suffix}: restored {count} times, asked {self._asked.get(suffix, 0)}")

    def unfinished(self, obj: TerraformObject) -> list[str]:
        """What is left of a request, which at rest nothing may be."""
        asked = obj.metadata.annotations.get(keys.RESTORE_STATE)
        return [] if asked is None else [f"{obj.metadata.name}: its restore of {asked} is not done"]

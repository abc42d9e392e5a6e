"""What a restore of an object depends on: its backups, its state, and what holds it up
(state.md: Asking for a restore)."""

from dataclasses import dataclass
from functools import cached_property

from captfctl.cluster.door import Door
from captfctl.model import keys
from captfctl.model.kinds import Kind
from captfctl.model.ops import Op
from captfctl.model.owner import Owner
from captfctl.model.resources import SECRETS
from captfctl.model.terraform import DeletionPolicy, TerraformObject
from captfctl.reconcile.cache import DoorCache
from captfctl.reconcile.held import held_by_state
from captfctl.reconcile.kinds import RULES, KindRules, owner_of, paused_by
from captfctl.terraform.contract.effective import Flags
from captfctl.terraform.state.backups import BackupSet, Damage, read_backup, read_backups
from captfctl.terraform.state.contents import Contents, addresses_in, kept_addresses, read_contents
from captfctl.terraform.state.lock import StateLock, read_lock
from captfctl.terraform.state.reader import Unreadable
from captfctl.terraform.state.unsaved import KeptState, find_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A backup that was read. `damage` is empty for one that can be restored; `addresses` are of
    the resources in it."""

    backup: BackupSet
    damage: str
    addresses: tuple[str, ...] = ()


class Situation:
    """What a restore of one object depends on. What only some questions need is read when they are
    asked."""

    def __init__(self, door: Door, kind: Kind, key: tuple[str, str]) -> None:
        """Raises `NotFound` when the object does not exist."""
        namespace, name = key
        self._door = door
        self.kind = kind
        self.obj: TerraformObject = door.get(RULES[kind.name].resource, name, namespace)
        self._rules: KindRules = RULES[kind.name](self.obj, DoorCache(door))
        self.owner: Owner = owner_of(self._rules)
        self.backups = read_backups(door, self.owner)

    @cached_property
    def live(self) -> Contents | Unreadable:
        """The state that is there."""
        return read_contents(self._door, self.owner)

    @cached_property
    def held(self) -> bool:
        """Whether a deletion would wait because of the state."""
        return bool(held_by_state(self._door, self.obj, self.owner, self.live, self.kept))

    @cached_property
    def kept(self) -> KeptState | None:
        """The state that a run could not store, and that the next one would."""
        return find_kept(self._door, self.owner)

    @cached_property
    def managed(self) -> tuple[str, ...] | None:
        """The resources of the state and of the kept one, which is the newer; None: neither can be
        read."""
        live = None if isinstance(self.live, Unreadable) else self.live.addresses
        if self.kept is None:
            return live
        kept = kept_addresses(self._door, self.owner, self.kept)
        return live if kept is None else tuple(dict.fromkeys((*(live or ()), *kept)))

    @cached_property
    def lock(self) -> StateLock:
        """The lock of the state."""
        return read_lock(self._door, self.owner)

    @cached_property
    def kept_by(self) -> str:
        """The UID of an earlier object that kept Secrets of these names; empty when none did."""
        labels = f"{self.owner.selector},{keys.RETAINED_FROM_UID}"
        listed = self._door.list(SECRETS.metadata_only(), self.owner.namespace, labels=labels)
        uids = {one.metadata.labels[keys.RETAINED_FROM_UID] for one in listed.items}
        return min(uids - {self.owner.uid}, default="")

    @property
    def pending(self) -> str:
        """What is asked for, as written; empty for nothing."""
        return self.obj.metadata.annotations.get(keys.RESTORE_STATE, "")

    @property
    def running_restore(self) -> str:
        """The Job that restores; empty when none does."""
        active = self.obj.status.active_job
        return active.name if active is not None and active.operation is Op.RESTORE else ""

    @property
    def paused(self) -> str:
        """What pauses the object; empty when nothing does."""
        return paused_by(self._rules)

    @property
    def retains(self) -> bool:
        """Whether its deletion keeps the infrastructure."""
        return self._rules.config(Flags()).deletion_policy is DeletionPolicy.RETAIN

    @property
    def mutable(self) -> bool:
        """Whether its inputs are applied to what is there."""
        return self._rules.mutable

    def load(self, backup: BackupSet) -> Loaded:
        """Read one backup, and whether it is intact."""
        found = read_backup(self._door, self.owner, backup)
        if isinstance(found, Damage):
            return Loaded(backup=backup, damage=found.why)
        return Loaded(backup=backup, damage="", addresses=addresses_in(found.text))

    def forgotten(self, loaded: Loaded) -> tuple[str, ...] | None:
        """The resources of what is replaced that are not in the backup; None: there is no state."""
        if self.managed is None or loaded.damage:
            return None
        there = frozenset(loaded.addresses)
        return tuple(address for address in self.managed if address not in there)

    def returned(self, loaded: Loaded) -> tuple[str, ...] | None:
        """The resources of the backup that are in nothing of what is replaced; None: there is no
        state."""
        if self.managed is None or loaded.damage:
            return None
        there = frozenset(self.managed)
        return tuple(address for address in loaded.addresses if address not in there)

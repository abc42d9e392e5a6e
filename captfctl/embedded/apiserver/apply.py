"""Server-side apply, and the bookkeeping of who set which field (`metadata.managedFields`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from captfctl.clock import Clock
from captfctl.cluster.door import Door
from captfctl.cluster.errors import BadRequest, Cause, Conflict, Invalid
from captfctl.embedded.apiserver import field_sets
from captfctl.embedded.apiserver.field_sets import NOTHING, FieldSet, Path
from captfctl.embedded.schemas import Node, builtin
from captfctl.embedded.store import IN_PROCESS, EmbeddedStore, Manage, Served
from captfctl.model.resource import Document

APPLY = "Apply"
UPDATE = "Update"
CONFLICT = "FieldManagerConflict"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_UPDATERS = 10
"""More updating managers than this are folded into one, the oldest first."""
FOLDED = "ancient-changes"

_META = "f:metadata"
_NOBODYS = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        (_META,),
        *(
            (_META, f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    }
)
"""What identifies an object or is the server's own belongs to no manager."""


@dataclass(frozen=True, slots=True)
class Manager:
    """One who sets fields. `version` is empty for appliers: they stay the same across versions."""

    name: str
    operation: str
    version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Ownership:
    """What one manager owns. `version` is the apiVersion its fields are written in."""

    fields: FieldSet
    version: str
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldManager:
    """Who writes, to which kind, and when. `empty` is what objects of the kind always consist of.

    `status`: the kind has a status subresource, so that a write goes either to the status or to
    everything else.
    """

    type: Node
    name: str
    version: str
    now: datetime
    subresource: str = ""
    status: bool = False
    empty: Document = field(default_factory=dict)

    def track(self, live: Document | None, new: Document) -> Document:
        """`new`, a create or update in place of `live`, with its managedFields brought up to date.

        Fields that changed go to this manager and leave all others. The managedFields that `new`
        brings along are taken over (a client may correct them); none at all: those of `live`.
        """
        owners = self._starting_point(live, new)
        difference = self._compare(live or self.empty, new)
        changed = difference.changed - _NOBODYS
        owners = _give_up(owners, difference.changed | difference.removed)
        if changed:
            me = Manager(self.name, UPDATE, self.version, self.subresource)
            before = owners[me].fields if me in owners else NOTHING
            owners[me] = Ownership(before | changed, self.version, self._time)
        return _with_owners(new, _folded(owners))

    def apply(self, live: Document | None, applied: Document, *, force: bool) -> Document:
        """What `live` becomes when this manager applies `applied`.

        Fields it applied before and leaves out now disappear unless somebody else owns them.
        Raises `Conflict` for a field that another manager owns and that would change, unless
        `force` takes it over; `BadRequest` for an applied object that brings managedFields.
        """
        if "managedFields" in applied.get("metadata", {}):
            raise BadRequest("metadata.managedFields must be left out of what is applied")
        start = live or _bare(applied)
        applied = self._mine(applied)
        owners = read_owners(start)
        me = Manager(self.name, APPLY, "", self.subresource)
        last = owners[me].fields if me in owners else NOTHING
        mine = field_sets.fields_of(applied, self.type) - _NOBODYS
        base = _without_owners(start)
        new = field_sets.merge(base, applied, self.type)
        new = self._pruned(new, last, mine, owners, me)
        difference = self._compare(base, new)
        others = {owner: what for owner, what in owners.items() if owner != me}
        conflicts = _conflicts(others, difference.changed)
        if conflicts and not force and not conflicts <= self._applied_before(base):
            raise ApplyConflict(others, conflicts)
        others = _give_up(others, difference.changed | difference.removed)
        if new == base and last == mine and live is not None:
            return live
        if mine:
            others[me] = Ownership(mine, self.version, self._time)
        return _with_owners(new, others)

    def _applied_before(self, live: Document) -> FieldSet:
        """What kubectl set by client-side apply, and what is still as it set it.

        Its server-side apply takes that over without a conflict: it is the same tool's.
        """
        text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
        if self.name != KUBECTL or not text:
            return NOTHING
        try:
            before = msgspec.json.decode(text, type=dict[str, Any])
            fields = field_sets.fields_of(before, self.type)
        except (msgspec.DecodeError, Invalid):
            return NOTHING
        difference = field_sets.compare(before, live, self.type)
        return fields - difference.changed - difference.removed

    @property
    def _time(self) -> str:
        return self.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _starting_point(self, live: Document | None, new: Document) -> dict[Manager, Ownership]:
        given = new.get("metadata", {}).get("managedFields")
        if given is not None and not self.subresource:
            if given in ([], [{}]):  # how a client clears them
                return {}
            owners = read_owners(new)
            if owners:
                return owners
        return read_owners(live or {})

    def _compare(self, live: Document, new: Document) -> field_sets.Comparison:
        old, wanted = self._mine(_without_owners(live)), self._mine(_without_owners(new))
        return field_sets.compare(old, wanted, self.type)

    def _mine(self, document: Document) -> Document:
        """The part of an object that a write to this subresource can change."""
        if not self.status:
            return document
        if self.subresource == "status":
            parts = ("apiVersion", "kind", "status")
            return {key: value for key, value in document.items() if key in parts}
        return {key: value for key, value in document.items() if key != "status"}

    def _pruned(
        self,
        merged: Document,
        last: FieldSet,
        mine: FieldSet,
        owners: dict[Manager, Ownership],
        me: Manager,
    ) -> Document:
        """`merged` without what this manager applied last time and nobody owns any more."""
        if not last - mine:
            return merged
        owned = mine.union(*(what.fields for owner, what in owners.items() if owner != me))
        kept = field_sets.with_named_parents(owned, self.type)
        gone = field_sets.with_named_parents(last, self.type) - kept - _NOBODYS
        pruned: Document = field_sets.without(merged, self.type, gone)
        return pruned


def field_manager(served: Served, name: str, now: datetime, subresource: str = "") -> FieldManager:
    """Writes of `name` to a kind of the store."""
    resource = served.resource
    known = builtin.name_of(resource.group, resource.version, resource.kind)
    return FieldManager(
        type=served.schema,
        empty=builtin.unset(known) if known else {},
        name=name,
        version=resource.api_version,
        now=now,
        subresource=subresource,
        status=served.status,
    )


def noted_door(
    store: EmbeddedStore, field_owner: str, clock: Clock, user: Mapping[str, Any] = IN_PROCESS
) -> Door:
    """A door in the store's process whose writes are noted as those through the API server are."""

    def track(served: Served, subresource: str) -> Manage:
        return field_manager(served, field_owner, clock.now(), subresource).track

    return store.door(track, user)


def settled(live: Document | None, new: Document) -> Document:
    """`new` as it was applied; only newer times in its managedFields are no change."""
    if live is None or _timeless(new) != _timeless(live):
        return new
    return live


def _timeless(document: Document) -> tuple[Document, dict[Manager, Ownership]]:
    owners = {m: replace(what, time="") for m, what in read_owners(document).items()}
    return _without_owners(document), owners


def read_owners(document: Document) -> dict[Manager, Ownership]:
    """The managedFields of an object; entries that cannot be read are left out."""
    owners: dict[Manager, Ownership] = {}
    for entry in document.get("metadata", {}).get("managedFields") or ():
        if not isinstance(entry, dict) or not isinstance(entry.get("fieldsV1"), dict):
            continue
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        manager = Manager(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else version,
            entry.get("subresource", ""),
        )
        try:
            fields = field_sets.decode(entry["fieldsV1"])
        except ValueError:
            continue
        if manager in owners:
            fields |= owners[manager].fields
        owners[manager] = Ownership(fields, version, entry.get("time", ""))
    return owners


def _with_owners(document: Document, owners: dict[Manager, Ownership]) -> Document:
    def order(item: tuple[Manager, Ownership]) -> tuple[str, str, str, str]:
        manager, what = item
        return manager.operation, what.time, manager.name, manager.subresource

    entries = [
        _entry(manager, what) for manager, what in sorted(owners.items(), key=order) if what.fields
    ]
    metadata = {k: v for k, v in document.get("metadata", {}).items() if k != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**document, "metadata": metadata}


def _entry(manager: Manager, what: Ownership) -> Document:
    entry: dict[str, Any] = {
        "apiVersion": what.version,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encode(what.fields),
        "manager": manager.name,
        "operation": manager.operation,
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    if what.time:
        entry["time"] = what.time
    return entry


def _without_owners(document: Document) -> Document:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return document
    rest = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**document, "metadata": rest}


def _bare(applied: Document) -> Document:
    """The object that an apply creates, before anything is applied to it."""
    metadata = applied.get("metadata", {})
    names = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return {"apiVersion": applied["apiVersion"], "kind": applied["kind"], "metadata": names}


def _give_up(
    owners: dict[Manager, Ownership], paths: set[Path] | FieldSet
) -> dict[Manager, Ownership]:
    left = {m: replace(what, fields=what.fields - paths) for m, what in owners.items()}
    return {manager: what for manager, what in left.items() if what.fields}


def _conflicts(owners: dict[Manager, Ownership], changed: FieldSet) -> FieldSet:
    return NOTHING.union(*(what.fields & changed for what in owners.values()))


class ApplyConflict(Conflict):
    """Fields that other managers own; one cause for each."""

    def __init__(self, owners: dict[Manager, Ownership], fields: FieldSet) -> None:
        causes = tuple(
            Cause(field_sets.path_text(path), f"conflict with {_name(manager, what)}", CONFLICT)
            for manager, what in sorted(owners.items(), key=lambda item: item[0].name)
            for path in sorted(what.fields & fields)
        )
        facts = "; ".join(f"{cause.message}: {cause.field}" for cause in causes)
        number = "1 conflict" if len(causes) == 1 else f"{len(causes)} conflicts"
        super().__init__(f"Apply failed with {number}: {facts}")
        self.causes = causes


def _name(manager: Manager, what: Ownership) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return f"{text} using {what.version}" if manager.operation == UPDATE else text


def _folded(owners: dict[Manager, Ownership]) -> dict[Manager, Ownership]:
    """At most `MAX_UPDATERS` updating managers: the oldest become one."""
    updaters = sorted(
        (m for m in owners if m.operation == UPDATE and not m.subresource),
        key=lambda manager: (owners[manager].time, manager.name),
    )
    surplus = (
        updaters[: max(0, len(updaters) - MAX_UPDATERS + 1)] if len(updaters) > MAX_UPDATERS else []
    )
    if not surplus:
        return owners
    left = {manager: what for manager, what in owners.items() if manager not in surplus}
    newest = owners[surplus[-1]]
    fields = NOTHING.union(*(owners[manager].fields for manager in surplus))
    left[Manager(FOLDED, UPDATE, newest.version, "")] = replace(newest, fields=fields)
    return left

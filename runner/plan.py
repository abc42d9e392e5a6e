"""Reading `show -json` of a saved plan: counts, drift, what is destroyed
(runner.md: Reading a plan).

The plan is walked change by change and never held as objects, so that memory stays near the size
of its text however large it is. Values are seen only by the fingerprint and by the redaction.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runner import fingerprint, jsontext, wire
from runner.jsontext import JsonError, JsonValue
from runner.redact import SecretSet

_LISTED_CHANGES = 50
_LISTED_DRIFT = 20
_SENSITIVE_LINE = 16


class Reading(NamedTuple):
    """Everything one pass over a plan yields.

    `destructive` lists `<address> (delete|replace)` in plan order; `secrets` the values the plan
    marks sensitive (runner.md: Secret values).
    """

    summary: wire.Plan
    drift: wire.Drift
    destructive: tuple[str, ...]
    secrets: SecretSet


def read(document: Iterable[bytes], key: bytes | None) -> Reading:
    """Read a plan, given in pieces; without a key its hash stays empty. Raises JsonError."""
    text = jsontext.as_ascii(document)
    top = jsontext.document(text)
    reader = _Reader(fingerprint.Fingerprint(key) if key is not None else None)
    if "resource_changes" in top:
        for entry in jsontext.values(text, top["resource_changes"]):
            reader.resource_change(_object(entry, "resource change"))
    if "output_changes" in top:
        for name, position in jsontext.members(text, top["output_changes"]).items():
            reader.output_change(name, _object(jsontext.decode_at(text, position), "output change"))
    if "prior_state" in top:
        reader.prior_state(text, top["prior_state"])
    return reader.reading()


class _FirstByAddress:
    """The lines with the first addresses in byte order, out of any number."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit
        self._kept: list[tuple[bytes, str]] = []

    def add(self, address: str, line: str) -> None:
        """Take a line; those that cannot be among the first are dropped now and then."""
        self.count += 1
        self._kept.append((address.encode("utf-8", "replace"), line))
        if len(self._kept) >= 4 * self._limit:
            self._cut()

    def lines(self) -> tuple[str, ...]:
        """The first lines; those of one address in the order they came in."""
        self._cut()
        return tuple(line for _, line in self._kept)

    def _cut(self) -> None:
        self._kept.sort(key=lambda item: item[0])
        del self._kept[self._limit :]


class _Reader:
    """Collects what a plan says, change by change."""

    def __init__(self, hasher: fingerprint.Fingerprint | None) -> None:
        self._hasher = hasher
        self._counts = {"create": 0, "update": 0, "replace": 0, "delete": 0}
        self._imports = self._moves = self._forgets = self._outputs = 0
        self._listed = _FirstByAddress(_LISTED_CHANGES)
        self._drifted: list[str] = []
        self._destructive: list[str] = []
        self._secrets = SecretSet()

    def resource_change(self, entry: dict[str, JsonValue]) -> None:
        address = _string(entry.get("address"), "address")
        previous = _string(entry.get("previous_address"), "previous_address")
        change = fingerprint.Change.of(entry.get("change"), previous)
        self._hide(change)
        actions = change.actions
        kind = _kind(actions)
        if kind in self._counts:
            self._counts[kind] += 1
            if len(self._drifted) < _LISTED_DRIFT:
                self._drifted.append(address)
        self._imports += change.importing is not None
        self._moves += bool(previous)
        self._forgets += "forget" in actions
        if "delete" in actions:
            what = "replace" if "create" in actions else "delete"
            self._destructive.append(f"{address} ({what})")
        labels = _labels(change, kind)
        if labels:
            self._listed.add(address, f"{address} ({labels})")
            if self._hasher is not None:
                self._hasher.add(address, change)

    def output_change(self, name: str, entry: dict[str, JsonValue]) -> None:
        change = fingerprint.Change.of(entry, "")
        if not change.no_op:
            self._outputs += 1
            if self._hasher is not None:
                self._hasher.add(f"output.{name}", change)

    def prior_state(self, text: str, position: int) -> None:
        """Hide sensitive values of data sources; only those reach a run's output unannounced."""
        values = jsontext.members(text, position).get("values")
        root = jsontext.members(text, values).get("root_module") if values is not None else None
        if root is not None:
            self._module(text, root)

    def _module(self, text: str, position: int) -> None:
        module = jsontext.members(text, position)
        if "resources" in module:
            for entry in jsontext.values(text, module["resources"]):
                resource = _object(entry, "resource")
                if resource.get("mode") == "data":
                    self._collect(resource.get("values"), resource.get("sensitive_values"))
        if "child_modules" in module:
            for place in jsontext.elements(text, module["child_modules"]):
                self._module(text, place)

    def _hide(self, change: fingerprint.Change) -> None:
        self._collect(change.before, change.before_sensitive)
        self._collect(change.after, change.after_sensitive)

    def _collect(self, value: JsonValue, marks: JsonValue) -> None:
        for leaf in _marked_strings(value, marks):
            self._secrets.add(leaf.encode("utf-8", "replace"), _SENSITIVE_LINE)

    def reading(self) -> Reading:
        """What was collected."""
        summary = wire.Plan(
            hash=self._hasher.hash() if self._hasher is not None else "",
            **self._counts,
            output_changes=self._outputs,
            imported=self._imports,
            move=self._moves,
            forget=self._forgets,
            resources=self._listed.lines(),
            truncated=self._listed.count > _LISTED_CHANGES,
        )
        drift = wire.Drift(
            detected=any(self._counts.values()), **self._counts, resources=tuple(self._drifted)
        )
        return Reading(summary, drift, tuple(self._destructive), self._secrets)


def _kind(actions: tuple[str, ...]) -> str:
    """The one action a change counts as; "" when it is not counted."""
    if "create" in actions and "delete" in actions:
        return "replace"
    for action in ("create", "delete", "update"):
        if action in actions:
            return action
    return ""


def _labels(change: fingerprint.Change, kind: str) -> str:
    labels = []
    if not change.no_op:
        labels.append("replace" if kind == "replace" else ",".join(change.actions))
    if change.importing is not None:
        labels.append("import")
    if change.previous_address:
        labels.append("move")
    return ", ".join(labels)


def _marked_strings(value: JsonValue, marks: JsonValue) -> Iterator[str]:
    """The non-empty strings of a value that lie under a true marker."""
    if not marks:
        return  # most of a plan is not marked
    if isinstance(value, str):
        if marks is True and value:
            yield value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marked_strings(item, fingerprint.part(marks, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _marked_strings(item, fingerprint.part(marks, key))


def _object(value: JsonValue, what: str) -> dict[str, JsonValue]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise JsonError(f"a {what} of the plan is not an object")
    return value


def _string(value: JsonValue, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise JsonError(f"{what} in the plan is not a string")
    return value

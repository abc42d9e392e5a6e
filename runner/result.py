"""The result document: what the manager learns of a run, within 4096 bytes (20 §19)."""

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from runner.plan import Drift, Summary
from runner.ui import Counts

LARGEST = 4096
_SHORTEST_TAIL = 16

# Kinds of error.
LAYOUT = "image-layout"
STEP = "step"
INTERRUPTED = "interrupted"
BLOCKED = "blocked"
PLAN_CHANGED = "plan-changed"


class StepRecord(NamedTuple):
    """One step that was run: its name, exit code and wall time in seconds (one decimal)."""

    name: str
    exit: int
    seconds: float


class Failure(NamedTuple):
    """Why a run failed. `step` is None when no step is to blame."""

    kind: str
    step: str | None
    tail: str
    resources: tuple[str, ...] = ()


class Result:
    """What is known about a run so far."""

    def __init__(self, op: str, image: str = "", command: tuple[str, ...] = ()) -> None:
        self.op = op
        self.image = image
        self.command = command
        self.providers_mirror = False
        self.runtime_version = ""
        self.steps: list[StepRecord] = []
        self.changes: Counts | None = None
        self.drift: Drift | None = None
        self.plan: Summary | None = None
        self.error: Failure | None = None

    def encode(self) -> bytes:
        """The document, reduced as far as needed to fit."""
        for document in _smaller_and_smaller(self._document(), self._minimal()):
            encoded = _encode(document)
            if len(encoded) <= LARGEST:
                return encoded
        raise AssertionError("the minimal result document always fits")

    def write(self, path: str) -> None:
        """Replace the file's content. Raises OSError.

        The file is written in place: a termination log is mounted and cannot be renamed over.
        """
        document = self.encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(document)

    def _document(self) -> dict[str, object]:
        document: dict[str, object] = {
            "version": 1,
            "op": self.op,
            "image": {"ref": self.image, "providersMirror": self.providers_mirror},
            "runtime": {"command": list(self.command), "version": self.runtime_version},
            "steps": [step._asdict() for step in self.steps],
            "drift": _drift(self.drift),
            "error": _failure(self.error),
        }
        if self.changes is not None:
            document["changes"] = _changes(self.changes)
        if self.plan is not None:
            document["plan"] = _plan(self.plan)
        return document

    def _minimal(self) -> dict[str, object]:
        document: dict[str, object] = {
            "version": 1,
            "op": self.op if len(self.op) <= 64 else "",
            "image": {"ref": "", "providersMirror": False},
            "runtime": {"command": [], "version": ""},
            "steps": [],
            "drift": None,
            "error": None,
        }
        if self.error is not None:
            document["error"] = _failure(Failure(self.error.kind, None, ""))
        if self.plan is not None:
            shown = self.plan._replace(
                resources=(), truncated=self.plan.truncated or bool(self.plan.resources)
            )
            document["plan"] = _plan(shown)
        return document


def _changes(counts: Counts) -> dict[str, int]:
    shown = {"add": counts.add, "change": counts.change, "destroy": counts.destroy}
    if counts.imports:
        shown["import"] = counts.imports
    return shown


def _drift(drift: Drift | None) -> dict[str, object] | None:
    if drift is None:
        return None
    return {
        "detected": drift.detected,
        "create": drift.create,
        "update": drift.update,
        "replace": drift.replace,
        "delete": drift.delete,
        "resources": list(drift.resources),
    }


def _plan(plan: Summary) -> dict[str, object]:
    shown: dict[str, object] = {
        "hash": plan.hash,
        "create": plan.create,
        "update": plan.update,
        "delete": plan.delete,
    }
    others = {
        "replace": plan.replace,
        "outputChanges": plan.output_changes,
        "import": plan.imports,
        "move": plan.moves,
        "forget": plan.forgets,
        "resources": list(plan.resources),
        "truncated": plan.truncated,
    }
    shown.update({key: value for key, value in others.items() if value})
    return shown


def _failure(error: Failure | None) -> dict[str, object] | None:
    if error is None:
        return None
    shown: dict[str, object] = {"kind": error.kind, "step": error.step, "tail": error.tail}
    if error.resources:
        shown["resources"] = list(error.resources)
    return shown


def _smaller_and_smaller(
    document: dict[str, object], minimal: dict[str, object]
) -> Iterator[dict[str, object]]:
    """The document after every single reduction, in the order in which detail is given up."""
    yield document
    if document.pop("changes", None) is not None:
        yield document
    error = document["error"]
    if isinstance(error, dict):
        for _ in _halve_list(error, "resources"):
            yield document
        while error["tail"]:
            error["tail"] = _last_half(error["tail"])
            yield document
    plan = document.get("plan")
    if isinstance(plan, dict):
        for _ in _halve_list(plan, "resources"):
            plan["truncated"] = True
            yield document
    drift = document["drift"]
    if isinstance(drift, dict) and drift["resources"]:
        drift["resources"] = None
        yield document
    steps = document["steps"]
    assert isinstance(steps, list)
    while len(steps) > 2:
        del steps[1]
        yield document
    yield minimal


def _halve_list(holder: dict[str, object], name: str) -> Iterator[None]:
    """Keep the first half of a list, again and again, until the member is gone."""
    while name in holder:
        items = holder[name]
        assert isinstance(items, list)
        kept = items[: len(items) // 2]
        if kept:
            holder[name] = kept
        else:
            del holder[name]
        yield None


def _last_half(tail: str) -> str:
    data = tail.encode("utf-8", "replace")
    half = data[len(data) // 2 :]
    # A character cut in two is dropped.
    return half.decode("utf-8", "ignore") if len(half) >= _SHORTEST_TAIL else ""


def _encode(document: dict[str, object]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")

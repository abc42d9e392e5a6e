"""The result as it comes together, and how it is made to fit (runner.md: The result document)."""

import os
from collections.abc import Callable, Iterator

from runner import wire
from runner.text import cut

_SHORTEST_TAIL = 16
_LONGEST_OP = 64


class Result:
    """What is known about a run so far."""

    def __init__(self, op: str, image: str = "", command: tuple[str, ...] = ()) -> None:
        self.op = op
        self.image = image
        self.command = command
        self.providers_mirror = False
        self.runtime_version = ""
        self.steps: list[wire.StepRecord] = []
        self.changes: wire.Changes | None = None
        self.drift: wire.Drift | None = None
        self.plan: wire.Plan | None = None
        self.error: wire.Failure | None = None
        self.unsaved: wire.Unsaved | None = None

    def hide(self, redact: Callable[[str], str]) -> None:
        """Take secrets out of the addresses; whatever else is told was redacted when it came."""
        if self.plan is not None:
            self.plan = self.plan._replace(resources=tuple(map(redact, self.plan.resources)))
        if self.drift is not None and self.drift.resources:
            self.drift = self.drift._replace(resources=tuple(map(redact, self.drift.resources)))

    def encode(self) -> bytes:
        """The document, reduced as far as needed to fit."""
        for reduced in _smaller_and_smaller(self.whole()):
            encoded = wire.encode(reduced)
            if len(encoded) <= wire.RESULT_MAX:
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

    def whole(self) -> wire.RunResult:
        """All of it, however long."""
        return wire.RunResult(
            op=self.op,
            image=self.image,
            providers_mirror=self.providers_mirror,
            command=self.command,
            runtime_version=self.runtime_version,
            steps=tuple(self.steps),
            drift=self.drift,
            error=self.error,
            changes=self.changes,
            plan=self.plan,
            unsaved=self.unsaved,
        )


def _smaller_and_smaller(result: wire.RunResult) -> Iterator[wire.RunResult]:
    """The result after every single reduction, in the order in which detail is given up."""
    yield result
    result = result._replace(changes=None)
    yield result
    while result.error is not None and result.error.resources:
        kept = _first_half(result.error.resources)
        result = result._replace(error=result.error._replace(resources=kept))
        yield result
    while result.error is not None and result.error.tail:
        tail = _first_half_of_text(result.error.tail)
        result = result._replace(error=result.error._replace(tail=tail))
        yield result
    while result.plan is not None and result.plan.resources:
        kept = _first_half(result.plan.resources)
        result = result._replace(plan=result.plan._replace(resources=kept, truncated=True))
        yield result
    if result.drift is not None and result.drift.resources:
        result = result._replace(drift=result.drift._replace(resources=None))
        yield result
    while len(result.steps) > 2:
        result = result._replace(steps=(result.steps[0], *result.steps[2:]))
        yield result
    yield _minimal(result)


def _minimal(result: wire.RunResult) -> wire.RunResult:
    """What is never given up: how the run ended, a plan's hash and counts, and
    what is told of a state that was not stored."""
    return wire.RunResult(
        op=result.op if len(result.op) <= _LONGEST_OP else "",
        error=None if result.error is None else wire.Failure(result.error.kind),
        plan=result.plan,
        unsaved=result.unsaved,
    )


def _first_half(items: tuple[str, ...]) -> tuple[str, ...]:
    return items[: len(items) // 2]


def _first_half_of_text(text: str) -> str:
    """The cause stands first in a summary. What is too short to tell anything is dropped."""
    half = len(text.encode("utf-8", "replace")) // 2
    return cut(text, half) if half >= _SHORTEST_TAIL else ""

"""What the rounds of the interrupt matrix come to."""

from collections import Counter
from dataclasses import dataclass, field


class RoundError(Exception):
    """What was left is not as it must be."""


@dataclass
class Tally:
    """What the rounds of one way came to."""

    rounds: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    state: Counter[str] = field(default_factory=Counter)
    lock: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def table(tallies: dict[str, Tally]) -> str:
    """The table of a finished matrix."""
    rows = [("stopped by", "rounds", "while running", "ended as", "state", "lock", "failed")]
    for way, tally in tallies.items():
        counted = [_counts(counter) for counter in (tally.hit, tally.ends, tally.state, tally.lock)]
        rows.append((way, str(tally.rounds), *counted, str(len(tally.failures))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    return "\n".join([*lines, *failures]) + "\n"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))

"""`make reference`: the pages in this folder that tables in the code are the source of."""

from collections.abc import Iterable
from pathlib import Path

from captfctl.model.events import EventReason
from captfctl.model.reasons import Reason, table

_INTRO = """\
# Reasons of conditions and events

What each reason on an object means and what to do about it. This page is made from
`captfctl/model/reasons.py` and `captfctl/model/events.py` by `make reference`.

| Standing | Meaning |
| --- | --- |
| done | as it should be, or nothing to do |
| progressing | something is running |
| waits by itself | something else has to happen first, and nothing has to be done for it |
| waits for a person | it stays until a person acts |
| failing | it is tried again by itself, with pauses, and probably has to be corrected |
| broken | the manager or its surroundings do not work |

The sentence in the last column is what to do; the condition's message names the objects.

## Conditions
"""

_EVENTS = """
## Events

The manager posts these on the object. A transition of a condition has the event that its reason
names in the tables above, and `ConditionChanged` where there is none.

"""


def reasons_page() -> str:
    """The text of `reasons.md`."""
    parts = [_INTRO]
    last = None
    for kind, reasons in table():
        if kind != last:
            parts.append(f"\n### `{kind}`\n")
            last = kind
        parts.append(f"\n{_about(reasons)}\n\n{_reasons(reasons)}\n")
    rows = (
        (f"`{event}`", "Warning" if event.warning else "Normal", event.action.value, event.meaning)
        for event in EventReason
    )
    return "".join(parts) + _EVENTS + _table(("Event", "Type", "Action", "Meaning"), rows) + "\n"


def _about(reasons: type[Reason]) -> str:
    return " ".join((reasons.__doc__ or "").split())


def _reasons(reasons: type[Reason]) -> str:
    rows = (
        (
            reason.status,
            f"`{reason}`",
            reason.standing.value,
            _event(reason),
            reason.meaning,
            reason.remedy,
        )
        for reason in reasons
    )
    return _table(("Status", "Reason", "Standing", "Event", "Meaning", "What to do"), rows)


def _event(reason: Reason) -> str:
    return "" if reason.event is EventReason.CONDITION_CHANGED else f"`{reason.event}`"


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)


def main() -> None:
    (Path(__file__).parent / "reasons.md").write_text(reasons_page())


if __name__ == "__main__":
    main()

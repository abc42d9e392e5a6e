"""`make reference`: the pages in this folder that tables in the code are the source of."""

from collections.abc import Iterable
from pathlib import Path

from captfctl.cli.settings_options import default_text
from captfctl.model.events import EventReason
from captfctl.model.reasons import Reason, table
from captfctl.settings import ManagerSettings, Setting, settings_with_flags

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
        (f"`{event}`", _severity(event), event.action.value, event.meaning) for event in EventReason
    )
    return "".join(parts) + _EVENTS + _table(("Event", "Type", "Action", "Meaning"), rows) + "\n"


def _severity(event: EventReason) -> str:
    if event is EventReason.CONDITION_CHANGED:
        return "either"
    return "Warning" if event.warning else "Normal"


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


_FLAGS = """\
# Flags of the manager

The flags of `captfctl manage`. This page is made from `captfctl/settings.py` by `make reference`.

"""
_COMMON_FLAGS = (
    (
        "`--kubeconfig`",
        "",
        "Kubeconfig of the API server to talk to.",
        "`$KUBECONFIG`, else the pod's ServiceAccount",
    ),
    ("`--logging-format`", "`text`", "Form of the log: text or json.", "for people"),
    (
        "`-v`, `--v`",
        "`2`",
        "How much to log: 0 problems, 1 to 3 what is done, 4 every detail.",
        "one line for each thing done",
    ),
)


def flags_page() -> str:
    """The text of `flags.md`."""
    rows = [
        (f"`{setting.option}`", _default(setting), setting.flag.help, setting.flag.why)
        for setting in settings_with_flags(ManagerSettings)
    ]
    columns = ("Flag", "Default", "Meaning", "Why this default")
    return _FLAGS + _table(columns, [*rows, *_COMMON_FLAGS]) + "\n"


def _default(setting: Setting) -> str:
    if setting.flag.variable:
        return f"`${setting.flag.variable}`"
    text = default_text(setting)
    if isinstance(text, bool):
        return "on" if text else "off"
    return f"`{text}`" if text != "" else ""


def main() -> None:
    folder = Path(__file__).parent
    (folder / "reasons.md").write_text(reasons_page())
    (folder / "flags.md").write_text(flags_page())


if __name__ == "__main__":
    main()

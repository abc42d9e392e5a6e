"""How a plan looks: for people in at most the width of their terminal, for programs as a document.

No value of a plan is in it, because there is none in the object.
"""

import io
from collections.abc import Iterator
from datetime import datetime
from typing import TextIO

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from captfctl.approvals import Evidence
from captfctl.cli.output import Document, escaped
from captfctl.model.durations import human_duration
from captfctl.model.meta import seconds_stamp
from captfctl.model.plan import PlanReason, PlanSummary, TerraformPlan

_BECAUSE = {
    PlanReason.MANUAL: "the cluster's apply policy is Manual",
    PlanReason.DESTRUCTIVE: "it deletes or replaces something",
    PlanReason.EXPORTS_CHANGE: "changed exports of the cluster delete or replace something",
}
_BINDS = {
    PlanReason.EXPORTS_CHANGE: (
        "An approval is for these inputs of the pool, whatever its bootstrap data is by then: "
        "what the list shows may be deleted or replaced."
    )
}
_BINDS_PLAN = (
    "An approval is for exactly this plan: if anything else would be done by the time it is "
    "applied, nothing is."
)
_STYLES = {"delete": "red", "replace": "red", "create": "green", "update": "yellow"}
_WIDE = 100_000


def print_plan(found: Evidence, warnings: list[str], now: datetime, file: TextIO) -> None:
    """In colours and broken to the width of a terminal; each line whole where it is none."""
    terminal = file.isatty()
    console = Console(file=file, highlight=False) if terminal else _plain()
    _print(console, found, warnings, now)
    if not terminal:
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().splitlines()
        file.write("".join(f"{line.rstrip()}\n" for line in lines))
    file.flush()


def _plain() -> Console:
    return Console(file=io.StringIO(), width=_WIDE, color_system=None, force_terminal=False)


def _print(console: Console, found: Evidence, warnings: list[str], now: datetime) -> None:
    plan = found.plan
    summary = plan.spec.summary
    console.print(_grid((Text(label, style="dim"), value) for label, value in _facts(plan, now)))
    if summary.resources:
        console.print()
        console.print(Padding(_grid(map(_entry, summary.resources)), (0, 0, 0, 2)))
    if summary.truncated:
        console.print(Text(f"  {_unlisted(summary)}", style="yellow"))
    console.print()
    for line in _notes(found):
        console.print(line)
    for warning in warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), escaped(warning)))
    console.print()


def _facts(plan: TerraformPlan, now: datetime) -> Iterator[tuple[str, Text]]:
    spec, meta = plan.spec, plan.metadata
    created = meta.creation_timestamp
    made = f", made {human_duration(now - created)} ago" if created else ""
    yield "Plan", Text(escaped(meta.name), style="bold")
    yield "Namespace", Text(escaped(meta.namespace))
    yield "Target", Text(escaped(spec.target_ref.shown))
    yield "Reason", Text(f"{spec.reason}: {_BECAUSE[spec.reason]}")
    yield "Phase", Text(f"{plan.phase}{made}")
    yield "Inputs", Text(escaped(spec.inputs_hash))
    yield "Hash", Text(escaped(spec.plan_hash))
    style = "bold red" if spec.summary.destructive else ""
    yield "Changes", Text(spec.summary.counts, style=style)


def _grid(rows: Iterator[tuple[Text, Text]], indent: int = 0) -> Table:
    grid = Table.grid(padding=(0, 2, 0, indent), pad_edge=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _entry(entry: str) -> tuple[Text, Text]:
    """What happens, then to what. An entry of another form is shown as it is."""
    address, parenthesis, labels = escaped(entry).rpartition(" (")
    if not parenthesis:
        return Text(""), Text(labels)
    labels = labels.removesuffix(")")
    return Text(labels, style=_STYLES.get(labels.partition(",")[0], "")), Text(address)


def _unlisted(summary: PlanSummary) -> str:
    actions = summary.create + summary.update + summary.replace + summary.delete + summary.forget
    more = actions - len(summary.resources)
    return f"{more} more not listed" if more > 0 else "more are not listed"


def _notes(found: Evidence) -> Iterator[Text]:
    spec = found.plan.spec
    if spec.summary.destructive:
        count = spec.summary.delete + spec.summary.replace
        what = "1 resource" if count == 1 else f"{count} resources"
        yield Text(f"It deletes or replaces {what}.", style="bold red")
    yield Text(_BINDS.get(spec.reason, _BINDS_PLAN))
    if found.job:
        yield Text("The whole plan is in the log of the Job that made it:")
        yield Text(f"  kubectl logs job/{found.job} -n {found.plan.metadata.namespace}")


def document_of(found: Evidence, warnings: list[str]) -> Document:
    """The same for programs."""
    plan = found.plan
    spec, meta = plan.spec, plan.metadata
    document: Document = {
        "plan": meta.name,
        "namespace": meta.namespace,
        "target": {"kind": spec.target_ref.kind, "name": spec.target_ref.name},
        "reason": spec.reason,
        "phase": plan.phase,
        "createdAt": seconds_stamp(meta.creation_timestamp),
        "inputsHash": spec.inputs_hash,
        "planHash": spec.plan_hash,
        "destructive": spec.summary.destructive,
        "summary": msgspec.to_builtins(spec.summary),
        "binds": "approval-hash" if spec.reason is PlanReason.EXPORTS_CHANGE else "plan",
        "warnings": warnings,
    }
    return {**document, "job": found.job} if found.job else document

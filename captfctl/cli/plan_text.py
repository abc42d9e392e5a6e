"""How a plan looks: for people in at most the width of their terminal, for programs as a document.

No value of a plan is in it, because there is none in the object.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TextIO

import msgspec

from captfctl.approvals import Evidence
from captfctl.cli.output import Document, escaped
from captfctl.cli.styled import Line, Pairs, Styled, print_styled
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


def print_plan(found: Evidence, warnings: list[str], now: datetime, file: TextIO) -> None:
    """In colours and broken to the width of a terminal; each line whole where it is none."""
    print_styled(_parts(found, warnings, now), file)


def _parts(found: Evidence, warnings: list[str], now: datetime) -> Iterator[Line | Pairs]:
    plan = found.plan
    summary = plan.spec.summary
    yield Pairs([(Styled(label, "dim"), value) for label, value in _facts(plan, now)])
    if summary.resources:
        yield Line()
        yield Pairs([_entry(one) for one in summary.resources], indent=2)
    if summary.truncated:
        yield Line(Styled(_unlisted(summary), "yellow"), wrap=True, indent=2)
    yield Line()
    yield from _notes(found)
    for warning in warnings:
        yield Line(Styled("Warning: ", "yellow"), escaped(warning), wrap=True)
    yield Line()


def _facts(plan: TerraformPlan, now: datetime) -> Iterator[tuple[str, Styled]]:
    spec, meta = plan.spec, plan.metadata
    created = meta.creation_timestamp
    made = f", made {human_duration(now - created)} ago" if created else ""
    yield "Plan", Styled(escaped(meta.name), "bold")
    yield "Namespace", Styled(escaped(meta.namespace))
    yield "Target", Styled(escaped(spec.target_ref.shown))
    yield "Reason", Styled(f"{spec.reason}: {_BECAUSE[spec.reason]}")
    yield "Phase", Styled(f"{plan.phase}{made}")
    yield "Inputs", Styled(escaped(spec.inputs_hash))
    yield "Hash", Styled(escaped(spec.plan_hash))
    yield "Changes", Styled(spec.summary.counts, "bold red" if spec.summary.destructive else "")


def _entry(entry: str) -> tuple[Styled, Styled]:
    """What happens, then to what. An entry of another form is shown as it is."""
    address, parenthesis, labels = escaped(entry).rpartition(" (")
    if not parenthesis:
        return Styled(""), Styled(labels)
    labels = labels.removesuffix(")")
    return Styled(labels, _STYLES.get(labels.partition(",")[0], "")), Styled(address)


def _unlisted(summary: PlanSummary) -> str:
    actions = summary.create + summary.update + summary.replace + summary.delete + summary.forget
    more = actions - len(summary.resources)
    return f"{more} more not listed" if more > 0 else "more are not listed"


def _notes(found: Evidence) -> Iterator[Line]:
    spec = found.plan.spec
    if spec.summary.destructive:
        count = spec.summary.delete + spec.summary.replace
        what = "1 resource" if count == 1 else f"{count} resources"
        yield Line(Styled(f"It deletes or replaces {what}.", "bold red"), wrap=True)
    yield Line(_BINDS.get(spec.reason, _BINDS_PLAN), wrap=True)
    if found.job:
        yield Line("The whole plan is in the log of the Job that made it:", wrap=True)
        command = f"kubectl logs job/{found.job} -n {found.plan.metadata.namespace}"
        yield Line(command, indent=2)


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

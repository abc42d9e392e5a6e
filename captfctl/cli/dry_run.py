"""`captfctl reconcile --dry-run`: the decision for each described object, and nothing else."""

from pathlib import Path

from captfctl.cli.described_input import known_kinds, read_objects
from captfctl.cli.described_variables import check_variables
from captfctl.cli.modules import ModuleSchemas, image_table
from captfctl.cli.output import Document, Format, Listing, Row, show
from captfctl.cli.targets import target_of
from captfctl.clock import SystemClock
from captfctl.decide import Action, duration
from captfctl.embedded.described import Described
from captfctl.model.kinds import KINDS
from captfctl.reconcile.oneshot import Evaluation, evaluate
from captfctl.settings import PassSettings

_COLUMNS = ("Kind", "Namespace", "Name", "Decision", "Reason", "Requeue", "Why", "Job")
_WIDE = frozenset({"Job"})
_WITHOUT_JOB = {
    Action.NONE: "none",
    Action.DROP_FINALIZER: "remove-finalizer",
    Action.RETAIN: "retain",
}


def dry_run(files: list[str], images: Path | None, output: Format) -> None:
    """Print what the next pass of every described object would do. `images` tells the modules.

    Raises `BadInput` with everything that is wrong with the files.
    """
    clock = SystemClock()
    table = image_table(images)
    store = known_kinds(clock)
    described = read_objects(files, store)
    check_variables(described, store.door(), ModuleSchemas(table))
    settings = PassSettings(runner_image="runner")
    rows = [
        _row(item, evaluate(store.door(), KINDS[target.kind], target.key, clock, settings))
        for item in described
        if (target := target_of(item)) is not None
    ]
    show(Listing(_COLUMNS, rows, _WIDE), output)


def _row(item: Described, found: Evaluation) -> Row:
    decision = found.op.value if found.op else _WITHOUT_JOB[found.action]
    requeue = duration.text(duration.seconds(round(found.requeue_after)))
    why = found.waiting or found.explanation
    kind = item.resource.kind
    cells = (
        kind,
        item.namespace,
        item.name,
        decision,
        found.reason,
        requeue if found.requeue_after else "",
        " ".join(why.split()),
        found.job,
    )
    return Row(cells, _document(item, found, decision, requeue), f"{kind.lower()}/{item.name}")


def _document(item: Described, found: Evaluation, decision: str, requeue: str) -> Document:
    document: Document = {
        "apiVersion": item.resource.api_version,
        "kind": item.resource.kind,
        "namespace": item.namespace,
        "name": item.name,
        "decision": decision,
        "reason": found.reason,
        "explanation": found.explanation,
        "requeueAfter": requeue,
    }
    if found.waiting:
        document["waiting"] = found.waiting
    if found.job:
        document["job"] = found.job
    return document

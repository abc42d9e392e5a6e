"""The table of reasons: what code says is in it, and what is in it is said by code."""

import ast
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from captfctl.model.condition_types import FALSE, NEGATIVE, TRUE, Type
from captfctl.model.events import EventReason
from captfctl.model.reasons import (
    AutoscalingActive,
    PlanApproved,
    PlanReady,
    Reason,
    Standing,
    reason_named,
    table,
)

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "captfctl"
TABLES = {PACKAGE / "model" / name for name in ("reasons.py", "events.py", "conditions.py")}

REASONS = {reasons.__name__: reasons for _, reasons in table()} | {"EventReason": EventReason}

# Not in the table before code says them: delete the line with the row that is added.
LATER = {
    "machine templates": [
        "ImageInspectFailed",
        "CapacityLabelInvalid",
        "VariablesValid",
        "VariablesSchemaNotDeclared",
        "VariablesRejected",
        "VariablesSourcePending",
        "VariablesSchemaUnavailable",
    ],
}
# A text that is the name of a reason and something else, too.
HOMONYMS = {
    "Ready": "the condition of a pod",
    "Paused": "a flag's name",
    "DeletionProtected": "the code of an error",
    "Deleting": "a decision",
    "PlanAwaitingApproval": "a decision",
    "DestructivePlanBlocked": "a decision",
    "DriftRemediation": "a decision",
    "InputsChanged": "a decision",
    "Provisioned": "a column",
    "Approved": "a phase of a plan",
    "Pending": "a phase of a plan",
    "Applied": "a phase of a plan",
    "Failed": "a phase of a plan",
    "Superseded": "a phase of a plan",
    "NamespaceTerminating": "a cause that an API server gives",
}


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "embedded" not in path.parts and path not in TABLES:
            yield path, ast.parse(path.read_text())


def mentions(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every `Class.MEMBER` of the tables that is not only compared with."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Compare):
            continue
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name in REASONS and node.attr in REASONS[name].__members__:
                yield name, node.attr
        yield from mentions(node)


def said() -> Counter[tuple[str, str]]:
    """What code says, where the table's own rows name an event included."""
    found: Counter[tuple[str, str]] = Counter()
    for _, tree in modules():
        found.update(mentions(tree))
    for name in ("reasons.py", "conditions.py"):
        tree = ast.parse((PACKAGE / "model" / name).read_text())
        found.update(mention for mention in mentions(tree))
    return found


def test_code_says_every_reason_in_the_table():
    every = {(name, member) for name, reasons in REASONS.items() for member in reasons.__members__}
    assert every - set(said()) == set()


def test_what_comes_later_is_not_in_the_table_yet():
    names = {reason for _, reasons in table() for reason in reasons} | set(EventReason)
    assert [name for group in LATER.values() for name in group if name in names] == []


def test_no_reason_is_written_as_a_text():
    names = {reason.value for reasons in REASONS.values() for reason in reasons} - set(HOMONYMS)
    names |= {name for group in LATER.values() for name in group}
    types = {kind.value for kind in Type}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in names - types
    ]
    assert found == []


@pytest.mark.parametrize("maker", ["ConditionValue", "Note"])
def test_conditions_and_events_are_made_from_the_table(maker: str):
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == maker
    ]
    assert found == []


def test_a_condition_is_set_by_a_row_of_the_table():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "set"
        and getattr(node.func.value, "attr", getattr(node.func.value, "id", "")) == "conditions"
        and path.name != "context.py"  # the pass sets a value, and values are made from rows
    ]
    assert found == []


DONE_AND_FALSE = {
    AutoscalingActive.AUTOSCALING_DISABLED,  # no pool has to have one
    # A plan that ended unapplied stays as it is.
    PlanReady.FAILED,
    PlanReady.SUPERSEDED,
    PlanApproved.NOT_APPROVED,
}
ROWS = [(kind, reason) for kind, reasons in table() for reason in reasons]


def test_a_reason_means_one_thing_in_one_condition():
    names = Counter((kind, reason.value) for kind, reason in ROWS)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_reason_is_found_by_type_and_name():
    assert all(reason_named(kind, reason.value) is reason for kind, reason in ROWS)
    assert reason_named(Type.STATE_READABLE, "Mirrored") is None


@pytest.mark.parametrize(("kind", "reason"), ROWS)
def test_every_row_is_whole(kind: Type, reason: Reason):
    assert reason.meaning.endswith(".")
    assert "\n" not in reason.remedy
    if reason.standing in (Standing.PERSON, Standing.FAILING, Standing.BROKEN):
        assert reason.remedy.endswith(".")
    if reason.standing is Standing.DONE:
        assert reason.status == (
            FALSE
            if kind in NEGATIVE | {Type.PAUSED, Type.RECONCILING} or reason in DONE_AND_FALSE
            else TRUE
        )


def test_the_committed_page_is_the_made_one():
    """`make reference` makes it again."""
    folder = ROOT / "docs" / "reference"
    assert (folder / "reasons.md").read_text() == runpy.run_path(folder / "make.py")[
        "reasons_page"
    ]()

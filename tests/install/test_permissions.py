"""Permissions are documented as they are granted."""

from pathlib import Path

import pytest

from captfctl.install import permissions

DOCUMENT = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
GRANTED = (
    *permissions.MANAGER,
    *permissions.LEADER,
    *permissions.RUNNER,
    *permissions.VIEWER,
    *permissions.EDITOR,
    *permissions.APPROVER,
)


@pytest.mark.parametrize("permission", GRANTED, ids=lambda p: f"{p.group}:{p.resources[0]}")
def test_each_permission_stands_in_the_document(permission):
    assert f"| {' | '.join(permission.cells)} |" in DOCUMENT


def test_the_document_grants_nothing_more():
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| ")]
    headings = [row for row in rows if row.startswith(("| Group", "| ---"))]

    assert len(rows) - len(headings) == len(GRANTED)

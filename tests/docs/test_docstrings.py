"""Most of what is public says what it promises."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

LEAST = 0.8
"""The part of public modules, classes and functions that must have a docstring."""


def _public(node: ast.AST, place: str) -> Iterator[tuple[str, ast.AST]]:
    """The public definitions of a module or class, with what is public inside classes."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield f"{place}.{name}", child
                yield from _public(child, f"{place}.{name}")
            case ast.FunctionDef(name=name) if not name.startswith("_"):
                yield f"{place}.{name}", child


def _definitions(package: Path) -> Iterator[tuple[str, ast.AST]]:
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text())
        place = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        yield place, tree
        yield from _public(tree, place)


@pytest.mark.parametrize("package", ["captfctl", "runner"])
def test_most_of_what_is_public_has_a_docstring(package):
    found = dict(_definitions(ROOT / package))
    silent = [name for name, node in found.items() if not ast.get_docstring(node)]  # type: ignore[arg-type]

    assert len(found) > 100
    assert 1 - len(silent) / len(found) >= LEAST, "\n".join(silent)

"""What comments cite is in the repository: a page of the reference and a heading in it."""

import re

import pytest

from tests.docs.pages import REFERENCE, Remark, headings, python_files, remarks

_ELSEWHERE = re.compile(
    r"§"
    r"|\b[Ss]pec(?:ification)? \d\d\b"
    r"|\b[Ss]eed 0\d\d\b"
    r"|\(\d\d(?:, \d\d)*\)(?! *[=<>+*/-])"
    r"|\((?:design|see design)[:)]"
    r"|design\.md"
)
"""References to pages that a reader of the repository does not have."""

_MAY_CITE = re.compile(
    r"\.md\b|§|[Ss]pec(ification)?[\s#]+\d\d|[Ss]eed[\s#]+0|\(\d\d[,)]|\((see[\s#]+)?design"
)
"""What any citation has, also one that is broken over lines: most files need no tokenizing."""


@pytest.fixture(scope="module")
def said() -> list[Remark]:
    files = [file for file in python_files() if _MAY_CITE.search(file.read_text())]
    return [remark for file in files for remark in remarks(file, _MAY_CITE)]


def test_every_citation_names_a_page_and_a_heading_of_it(said):
    known = {page.name: set(headings(page)) for page in REFERENCE.glob("*.md")}

    lost = [
        f"{remark}: {page}: {heading}"
        for remark in said
        for page, heading in remark.citations
        if heading not in known.get(page, ())
    ]

    assert not lost, "\n".join(lost)


def test_the_code_cites_the_reference(said):
    cited = {citation.page for remark in said for citation in remark.citations}

    assert {"runs.md", "leases.md", "runner.md", "state.md", "reconcile.md", "decision.md"} <= cited


def test_headings_are_cited_in_one_form(said):
    assert [str(remark) for remark in said if remark.cites_in_another_form] == []


def test_nothing_is_cited_that_is_not_in_the_repository(said):
    elsewhere = [f"{remark}: {remark.text}" for remark in said if _ELSEWHERE.search(remark.text)]

    assert not elsewhere, "\n".join(elsewhere)


@pytest.mark.parametrize(
    "text",
    [
        "Starting a Job (11 §6).",
        "As specification 31 says.",
        "The exit code of seed 001.",
        "Plans to approve (41), which do not exist yet.",
        "The contract (30, 60).",
        "A node (design: node agent).",
    ],
)
def test_the_old_forms_of_citations_are_recognized(text):
    assert _ELSEWHERE.search(text)


def test_a_citation_may_be_broken_over_lines(tmp_path):
    file = tmp_path / "example.py"
    docstring = '"""One (runs.md: Starting\na Job; state.md: The state lock)."""'
    file.write_text(f"{docstring}\n# See leases.md: When\n# a lease is free.\n")

    found = [remark.citations for remark in remarks(file)]

    assert found == [
        [("runs.md", "Starting a Job"), ("state.md", "The state lock")],
        [("leases.md", "When a lease is free")],
    ]

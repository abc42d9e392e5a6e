"""Links between the pages of the documentation lead somewhere."""

import re

import pytest

from tests.docs.pages import ROOT, anchor, headings

PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    broken = []
    for link in _LINK.findall(page.read_text()):
        if "://" in link:
            continue
        name, _, wanted = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (wanted and wanted not in map(anchor, headings(target))):
            broken.append(link)

    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_headings_of_a_page_are_different(page):
    found = headings(page)

    assert len(set(found)) == len(found) or page.name == "CHANGELOG.md"


def test_the_index_of_the_reference_names_every_page():
    index = (ROOT / "docs" / "reference" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs" / "reference").glob("*.md")} - {"README.md"}

    assert {name for name in pages if f"]({name})" not in index} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_repository_that_a_page_names_exist(page):
    named = re.findall(
        r"`((?:captfctl|runner|tests|deploy|benchmarks|examples)/[\w./-]*)`", page.read_text()
    )

    assert [name for name in named if not (ROOT / name).exists()] == []

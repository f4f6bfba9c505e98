"""The pages link to files that exist, and the table of contents to every page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, links

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    missing = [str(target) for target in links(page) if not target.exists()]
    assert missing == []


def test_every_page_is_in_the_table_of_contents() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {*links(index), index}
    assert [str(p.relative_to(ROOT)) for p in PAGES if p not in linked] == []

"""The pages link to files that exist, and the table of contents to every page."""

from __future__ import annotations

import re
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


def test_the_glossary_names_what_is_there() -> None:
    """Every file and folder that the glossary points to exists."""
    source = ROOT / "src" / "weft"
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/[a-z_]+))`", text)
    named = [n for n in named if n != "src/weft"]
    assert len(named) > 40
    gone = [
        n
        for n in named
        if not any((source / folder / n).exists() for folder in ("", "schedule", "graph/layout", "schedule/legality"))
    ]
    left = [n for n in gone if not (n.endswith(".py") and list(source.rglob(n)))]
    assert left == []

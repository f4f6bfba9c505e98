"""Every chapter of the tour does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, run

CHAPTERS = sorted((ROOT / "docs" / "tour").glob("*.md"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda p: p.stem)
def test_chapter(chapter: Path) -> None:
    assert run(chapter) > 0

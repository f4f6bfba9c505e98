"""Every recipe in the documentation works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, run

RECIPES = sorted((ROOT / "docs" / "how_to").glob("*.md"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_recipe(recipe: Path) -> None:
    assert run(recipe) > 0

"""docs/how_to/add_a_primitive.md does what it says."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weft.schedule.primitive import PRIMITIVES
from weft.schedule.stubs import stub_text

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "add_a_primitive.md"


def load(text: str, path: Path) -> ModuleType:
    """Imports *text* as a module of its own."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The primitive of the page, registered, and its test."""
    primitive, test = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    before = dict(PRIMITIVES)
    yield load(primitive, tmp_path / "add_unit_loop.py"), load(test, tmp_path / "page_test.py")
    PRIMITIVES.clear()
    PRIMITIVES.update(before)


def test_the_page(blocks: tuple[ModuleType, Any]) -> None:
    primitive, test = blocks
    assert PRIMITIVES["add_unit_loop"].summary.startswith("Puts a loop of one iteration")
    assert "def add_unit_loop(self, block: BlockRef, name: str = 'u') -> LoopRef: ..." in stub_text()
    texts: list[str] = []
    test.test_around_a_reduction(texts.append)
    test.test_refused_twice(texts.append)
    assert (primitive.__doc__ or "").startswith("`add_unit_loop`: ")
    assert "for u in range(0, 1):\n                    with block" in texts[0]
    assert "is not legal: there is a loop u around C already\n" in texts[1]
    assert texts[1].endswith("  hint: choose another name\n")

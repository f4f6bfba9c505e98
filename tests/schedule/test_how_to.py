"""docs/how_to/add_a_primitive.md does what it says."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weft.schedule.cursors.primitive import PRIMITIVES
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
    yield load(primitive, tmp_path / "drop_unit_loop.py"), load(test, tmp_path / "page_test.py")
    PRIMITIVES.clear()
    PRIMITIVES.update(before)


def test_the_page(blocks: tuple[ModuleType, Any]) -> None:
    primitive, test = blocks
    assert PRIMITIVES["drop_unit_loop"].summary == "Removes *loop*, which must have one iteration."
    assert "def drop_unit_loop(self, loop: LoopRef) -> None: ..." in stub_text()
    texts: list[str] = []
    test.test_left_over_by_a_split(texts.append)
    test.test_refused_for_a_longer_loop(texts.append)
    assert (primitive.__doc__ or "").startswith("`drop_unit_loop`: ")
    assert "for i_1 in range(0, 5):" in texts[0]
    assert "i_0" not in texts[0]
    assert "is not legal: the loop i has more than one iteration\n" in texts[1]
    assert texts[1].endswith("  hint: fuse it with another one\n")

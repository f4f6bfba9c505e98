"""The names that benchmarks take from Weft are there: few of them run in the tests, and a name that moves breaks the others."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT

BENCHMARKS = sorted((ROOT / "benchmarks").glob("**/*.py"))


def taken_from_weft(path: Path) -> Iterator[tuple[str, str]]:
    """Yields each module of Weft that a file imports from, with the name that it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "weft":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda p: p.stem)
def test_names_are_there(path: Path) -> None:
    for module, name in taken_from_weft(path):
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"


def test_a_name_that_moved_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text("from weft.graph import GraphOptions\nimport numpy\n")
    with pytest.raises(AssertionError, match=r"weft\.graph has no GraphOptions"):
        test_names_are_there(file)

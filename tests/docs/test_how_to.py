"""The how-to pages do what they say, and change no more files than they say."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.markdown import ROOT, blocks, patched, run, source_files

from weft.codegen import toolchain
from weft.frontends.onnx import translations  # noqa: F401  (fills TABLE, which would else be taken for what a page added)
from weft.frontends.onnx.registry import TABLE
from weft.ops import OPERATORS

FOLDER = ROOT / "docs" / "how_to"
PAGES = sorted(p for p in FOLDER.glob("*.md") if p.stem != "add_a_primitive")  # which is tested with the primitives


def project_modules() -> dict[str, ModuleType]:
    return {name: m for name, m in sys.modules.items() if name.partition(".")[0] in ("weft", "tests")}


@pytest.fixture
def kept_registries() -> Iterator[None]:
    """Takes back what a page has registered, and the modules that it made or replaced."""
    operators, table, modules = dict(OPERATORS), dict(TABLE), project_modules()
    yield
    for name in set(OPERATORS) - set(operators):
        del OPERATORS[name]
    for key in set(TABLE) - set(table):
        del TABLE[key]
    for name in [n for n, m in project_modules().items() if m.__spec__ is None]:
        del sys.modules[name]
    sys.modules.update(modules)
    importlib.reload(toolchain)  # which has names of the table of backends


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
@pytest.mark.usefixtures("kept_registries")
def test_page(page: Path) -> None:
    assert run(page) > 0


def test_an_operator_is_one_file_and_one_block_for_a_format() -> None:
    operator, translation = sorted(source_files(FOLDER / "add_an_operator.md"), key=lambda f: "frontends" in f)
    assert Path(operator).parent == Path("src/weft/ops")
    assert Path(translation).parent == Path("src/weft/frontends/onnx/ops")


def test_a_graph_pass_is_one_file_and_a_line_in_the_pipeline() -> None:
    assert source_files(FOLDER / "add_a_graph_pass.md") == [
        "src/weft/graph/passes/pipeline.py",
        "src/weft/graph/passes/subtract_negations.py",
    ]


def test_a_frontend_is_one_folder_and_a_line_in_the_table() -> None:
    *folder, table = sorted(source_files(FOLDER / "add_a_frontend.md"), key=lambda f: "dispatch" in f)
    assert {str(Path(f).parent) for f in folder} == {"src/weft/frontends/layers"}
    assert table == "src/weft/frontends/dispatch.py"
    (diff,) = [b for b in blocks(FOLDER / "add_a_frontend.md") if b.language == "diff"]
    assert len(patched(diff).splitlines()) == len((ROOT / diff.file).read_text().splitlines()) + 1


def test_a_backend_is_one_folder_and_a_line_in_the_table() -> None:
    assert source_files(FOLDER / "add_a_backend.md") == [
        "src/weft/codegen/backends.py",
        "src/weft/codegen/text/backend.py",
        "src/weft/codegen/text/facts.py",
    ]


def test_a_machine_is_a_line_in_the_table() -> None:
    assert source_files(FOLDER / "add_a_machine.md") == ["src/weft/targets/cores.py"]
    (diff,) = [b for b in blocks(FOLDER / "add_a_machine.md") if b.language == "diff"]
    assert len(patched(diff).splitlines()) == len((ROOT / diff.file).read_text().splitlines()) + 1


def test_an_added_line_stands_after_the_line_before_it() -> None:
    (page,) = [p for p in PAGES if p.stem == "add_a_graph_pass"]
    (diff,) = [b for b in blocks(page) if b.language == "diff"]
    before, after = (ROOT / diff.file).read_text().splitlines(), patched(diff).splitlines()
    assert [line for line in after if "subtract_negations" not in line] == before
    assert len(after) == len(before) + 2

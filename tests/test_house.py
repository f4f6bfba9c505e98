"""The rules of the house that no linter knows: a fast lazy import, all layers in place, text about Weft alone."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sources import ROOT, SRC, parsed, python_sources, trees

import weft
from weft.support.lazy_import import resolve

LAYERS = [
    "cli", "integrations", "tune", "driver", "frontends", "graph", "ops", "te", "schedule", "lower", "codegen",
    "cost", "targets", "loop", "ir", "records", "runtime", "native", "support",
]  # fmt: skip

# Spelled in pieces, so that this file passes its own check: machine paths, registry hosts, unfinished work.
FORBIDDEN = [
    "".join(pieces)
    for pieces in [
        ("/wo", "rk/"), ("/ro", "ot/"), (r"\.\.", "/shared"), ("py", "pi.org"), ("python", "hosted"), ("npm", "js.org"),
        ("crates", r"\.io"), ("proxy.go", "lang"), (r"\bTO", r"DO\b"), (r"\bFIX", r"ME\b"), (r"\bXX", r"X\b"),
    ]
]  # fmt: skip
TEXT = {".py", ".pyi", ".c", ".h", ".cpp", ".md", ".toml", ".txt", ".js", ".ts", ".html", ".json", ""}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_no_heavy_module() -> None:
    heavy = run_python(
        "import sys, weft; print(sorted({m.partition('.')[0] for m in sys.modules}"
        " & {'numpy', 'ml_dtypes', 'llvmlite', 'onnx', 'typer', 'rich', 'torch'}))"
    )
    assert heavy == "[]"


@pytest.mark.timed
def test_import_takes_under_150_ms() -> None:
    code = "import time; t = time.process_time(); import weft; print(time.process_time() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < 0.150


def test_runtime_loads_no_compiler() -> None:
    loaded = run_python(
        "import sys, weft.runtime; print(*sorted(m for m in sys.modules if m.startswith('weft.')))"
    ).split()
    layers = {name.split(".")[1] for name in loaded}
    assert layers <= {"runtime", "native", "support"}


@pytest.mark.parametrize("name", sorted(weft._PUBLIC))
def test_public_name_resolves_and_is_listed(name: str) -> None:
    module, attribute = weft._PUBLIC[name]
    assert getattr(weft, name) is getattr(sys.modules[module], attribute)
    assert name in dir(weft)
    assert name in weft.__all__


def test_public_names_are_the_same_for_type_checkers() -> None:
    block = next(s for s in parsed((SRC / "__init__.py").read_text()).body if isinstance(s, ast.If))
    typed = {
        alias.asname: (statement.module, alias.name)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert typed == weft._PUBLIC


def test_unknown_name_lists_the_public_ones() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'compyle'; it has .*WeftError"):
        weft.__getattr__("compyle")


def test_layers_are_present_and_contracted() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    listed = re.findall(r"\w+", contracts["importlinter:contract:layers"]["layers"])
    assert listed == LAYERS
    packages = {p.parent.name for p in SRC.glob("*/__init__.py")}
    assert packages == set(LAYERS)


def imports_in_functions(tree: ast.Module) -> Iterator[int]:
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from (s.lineno for s in ast.walk(function) if isinstance(s, (ast.Import, ast.ImportFrom)))


def test_no_import_inside_a_function() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, tree in trees()
        if path != SRC / "__init__.py"
        for line in imports_in_functions(tree)
    ]
    assert offenders == []


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def importers(package: str) -> list[str]:
    """The modules under src that import *package* or something in it."""
    return [
        ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
        for path, tree in trees(package.rpartition(".")[2])
        if any(f"{name}.".startswith(f"{package}.") for name in imported_modules(tree))
    ]


def test_reference_evaluator_is_not_imported() -> None:
    """The judge of the conformance tests must not be part of what it judges."""
    assert importers("onnx.reference") == []


def test_onnxruntime_is_imported_only_to_compare_with_it() -> None:
    assert [m for m in importers("onnxruntime") if not m.startswith(("weft.cli.bench", "weft.cli.demo"))] == []


def test_pytorch_is_imported_only_for_its_own_programs_and_in_one_cost_model() -> None:
    others = [m for m in importers("torch") if not m.startswith("weft.frontends.torch.")]
    integrations = ["weft.integrations.torch_backend", "weft.integrations.torch_threads"]
    assert sorted(others) == [*integrations, "weft.tune.models.tree_rnn"]


def project_text() -> list[Path]:
    roots = [ROOT / name for name in ("src", "tests", "docs", "examples", "benchmarks", ".ci")]
    files = [p for root in roots for p in root.rglob("*") if p.suffix in TEXT and p.is_file()]
    return [p for p in files if "__pycache__" not in p.parts] + [
        p
        for p in ROOT.iterdir()
        if p.suffix in TEXT and p.is_file() and p.name != ".git"  # a file, in a worktree of git
    ]


def test_text_speaks_of_the_project_alone() -> None:
    pattern = re.compile("|".join(FORBIDDEN))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in project_text()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def lazy_places() -> list[str]:
    """Returns all texts in the source that name a module of Weft's and an attribute of it."""
    place = re.compile(r"weft(\.\w+)+:\w+")
    read = [text for p in python_sources() if place.search(text := p.read_text(encoding="utf-8"))]
    texts = [n.value for text in read for n in ast.walk(parsed(text)) if isinstance(n, ast.Constant)]
    return sorted({t for t in texts if isinstance(t, str) and place.fullmatch(t)})


@pytest.mark.parametrize("place", lazy_places())
def test_names_that_are_imported_late_are_there(place: str) -> None:
    try:
        found = resolve(place)
    except ModuleNotFoundError as missing:  # an optional package: the module has the name all the same
        if (missing.name or "weft").startswith("weft"):
            raise
        module, _, attribute = place.partition(":")
        text = (SRC.parent / Path(*module.split(".")).with_suffix(".py")).read_text(encoding="utf-8")
        found = re.search(rf"^(class|def) {attribute}\b", text, re.MULTILINE)
    assert found is not None

"""The table of backends: what it names is there, and a target without a backend is told so."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import weft
from weft.codegen import SourceCode, backend_of, compile_program
from weft.codegen.backends import BACKENDS, backend_facts
from weft.loop import parse_program
from weft.support.errors import ToolchainError
from weft.support.lazy_import import resolve
from weft.targets import host
from weft.targets.grid_machines import GENERIC_THREADS


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_goes_by_its_name_and_tells_its_versions(name: str) -> None:
    assert resolve(f"{BACKENDS[name]}.backend:BACKEND").name == name
    assert backend_facts(replace(host(), backend=name))


def test_facts_are_told_without_a_compiler() -> None:
    code = (
        "import sys; from weft.codegen.backends import backend_facts; from weft.targets.registry import host;"
        "print(backend_facts(host()), 'llvmlite' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("llvmlite 0.50")
    assert done.stdout.endswith(" False\n")


def test_a_target_without_a_backend() -> None:
    program = parse_program("def f(x: u8[64]):\n    pass\n")
    with pytest.raises(ToolchainError) as error:
        compile_program(program, GENERIC_THREADS)
    assert str(error.value) == (
        "the target threads has no backend: there are c, cuda, llvm, metal, null, opencl, wgsl\n"
        "  hint: schedule, lower and interpret its programs; no code can be made of them"
    )


def test_source_code_is_no_image() -> None:
    with pytest.raises(ToolchainError, match="pascal is no machine code"):
        backend_of(host()).image(SourceCode("pascal", ""), host())


@cache
def imports(path: Path) -> set[str]:
    """Returns the modules that a file imports, and the names that it imports from packages as if they were modules."""
    found: set[str] = set()
    for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(n, ast.Import):
            found |= {a.name for a in n.names}
        elif isinstance(n, ast.ImportFrom) and n.module:
            found |= {n.module} | {f"{n.module}.{a.name}" for a in n.names}
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BACKENDS)
def test_nobody_imports_a_backend_but_itself(name: str) -> None:
    package = BACKENDS[name]
    root = Path(weft.__file__).parent
    own = root / package.removeprefix("weft.").replace(".", "/")
    others = [p for p in root.rglob("*.py") if own not in p.parents]
    found = {str(p) for p in others for m in imports(p) if f"{m}.".startswith(f"{package}.")}
    assert found == set()

"""The structure of the sources in numbers: `python -m tests.counts` prints them; a test holds each to its limit.

Complexity is McCabe's ("A complexity measure", 1976), boolean operators and comprehensions counted as branches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SRC: Final = ROOT / "src" / "weft"

FLAT, LINES, COMPLEXITY = 20, 400, 15
"""The most files of a folder, lines of a file, and branches of a function that count as none too many."""

_BRANCHES: Final = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.With,
    ast.Assert,
    ast.comprehension,
    ast.match_case,
)


@dataclass(frozen=True)
class Count:
    """Places that are to be few: at most *limit* of them."""

    name: str
    places: tuple[str, ...]
    limit: int

    def __str__(self) -> str:
        return f"{self.name:<42}{len(self.places):>5}   (at most {self.limit})"


def sources(*roots: Path) -> list[Path]:
    """Returns the Python files under *roots*, those of the package if none are given."""
    return sorted(p for root in roots or (SRC,) for p in root.rglob("*.py"))


def flat_folders() -> Iterator[str]:
    """Yields the folders of the package and of its tests with more than `FLAT` modules side by side."""
    for folder in sorted({p.parent for p in sources(SRC, ROOT / "tests")}):
        count = len([p for p in folder.glob("*.py") if p.name != "__init__.py"])
        if count > FLAT:
            yield f"{folder.relative_to(ROOT)}: {count}"


def long_files() -> Iterator[str]:
    """Yields the files of more than `LINES` lines."""
    for p in sources():
        count = len(p.read_text(encoding="utf-8").splitlines())
        if count > LINES:
            yield f"{p.relative_to(ROOT)}: {count}"


def tangled_functions() -> Iterator[str]:
    """Yields the functions whose complexity is above `COMPLEXITY`."""
    for p in sources():
        for f in ast.walk(ast.parse(p.read_text(encoding="utf-8"))):
            if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) and (n := complexity(f)) > COMPLEXITY:
                yield f"{p.relative_to(ROOT)}:{f.lineno} {f.name}: {n}"


def complexity(function: ast.AST) -> int:
    """Returns one more than the number of branches, those of functions inside of it left out."""
    total, stack = 1, list(ast.iter_child_nodes(function))
    while stack:
        n = stack.pop()
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        total += isinstance(n, _BRANCHES) + (len(n.values) - 1 if isinstance(n, ast.BoolOp) else 0)
        stack += ast.iter_child_nodes(n)
    return total


def unformatted() -> Iterator[str]:
    """Yields the statements that the formatter is told to leave alone."""
    for p in sources(ROOT / "src", ROOT / "tests", ROOT / "benchmarks", ROOT / "examples"):
        for number, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"#\s*fmt: (skip|off)", line):
                yield f"{p.relative_to(ROOT)}:{number}"


def hidden_imports() -> Iterator[str]:
    """Yields the calls of `importlib.import_module` and `__import__` outside of the one place for lazy imports."""
    allowed = {SRC / "__init__.py", SRC / "support" / "lazy_import.py"}
    for p in sources():
        for n in ast.walk(ast.parse(p.read_text(encoding="utf-8"))):
            if not isinstance(n, ast.Call):
                continue
            if ast.unparse(n.func) in ("importlib.import_module", "import_module", "__import__") and p not in allowed:
                yield f"{p.relative_to(ROOT)}:{n.lineno}"


def counts() -> list[Count]:
    """Returns all counts."""
    return [
        Count(f"folders of more than {FLAT} files", tuple(flat_folders()), 0),
        Count(f"files of more than {LINES} lines", tuple(long_files()), 0),
        Count(f"functions of complexity above {COMPLEXITY}", tuple(tangled_functions()), 9),
        Count("statements that are not formatted", tuple(unformatted()), 39),
        Count("imports that no tool sees", tuple(hidden_imports()), 0),
    ]


if __name__ == "__main__":
    for c in counts():
        print(c)
        if len(c.places) > c.limit:
            print(*[f"    {place}" for place in c.places], sep="\n")

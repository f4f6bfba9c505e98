"""The structure of the sources in numbers: `python -m tests.counts` prints them; a test holds each to its limit.

Files to add: the how-to page of each kind of extension is executed by a test; its blocks name the files that it adds
(a new folder counts as one) and those in which it changes lines.

Complexity is McCabe's ("A complexity measure", 1976), boolean operators and comprehensions counted as branches.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tests.cost import test_no_numbers
from tests.ops import test_no_lists_of_operators
from tests.support.sources import ROOT, SRC, trees

ONE_IDEA: Final[dict[str, str]] = {
    "each representation has its nodes, its text and what changes it": (
        "nodes parser printer manager pipeline"  # of expressions, loop programs and graphs
    ),
    "backends translate the same nodes": "backend entry_wrapper expressions facts scalars statements",
    "frontends read the same operators, of which composites and formulas are made": (
        "activations attention call claims complex_numbers control convolution creation elementwise fourier frontend images "
        "importer indexing linear linear_algebra movement normalization ordering pooling quantization recurrent reduction resize "
        "weights"
    ),
    "what a rule, a layout or a primitive does, and what it costs": (
        "channel_blocks contraction dot_product gemv inlining k_blocking parallel prefetch sketch window winograd"
    ),
    "a primitive asks for what a pass then does; a formula has its rule": "scan vectorize",
    "a command shows what the driver does; a room of commands has its own": "command compile peak profile roofline",
    "tables of things by name, and modules that are run": "registry __main__",
}
"""Stems of files in several rooms, by the idea that all of these files are about."""

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
    """Places that are to be few: at most *limit* of them. They are looked for when they are asked for."""

    name: str
    find: Callable[[], Iterable[str]]
    limit: int

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The places that *find* finds."""
        return tuple(self.find())

    def __str__(self) -> str:
        return f"{self.name:<64}{len(self.places):>5}   (at most {self.limit})"


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
    for p, tree in trees():
        for f in ast.walk(tree):
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
    for p, tree in trees("import_module", "__import__"):
        for n in ast.walk(tree):
            if not isinstance(n, ast.Call):
                continue
            if ast.unparse(n.func) in ("importlib.import_module", "import_module", "__import__") and p not in allowed:
                yield f"{p.relative_to(ROOT)}:{n.lineno}"


def string_keyed_notes() -> Iterator[str]:
    """Yields the places that make notes whose keys are text, other than the primitive `annotate` and the parser."""
    allowed = {SRC / "loop" / "note_parser.py", SRC / "schedule" / "primitives" / "hardware" / "annotate.py"}
    for p, tree in trees("UserNote", "annotate"):
        for n in ast.walk(tree):
            if isinstance(n, ast.Call) and p not in allowed and ast.unparse(n.func).endswith(("UserNote", ".annotate")):
                yield f"{p.relative_to(ROOT)}:{n.lineno}"


@dataclass(frozen=True)
class Extension:
    """A kind of thing to add: the *page* that does so, and the *files* (or folders) and *lines* in tables that it is to take."""

    name: str
    page: str
    files: int
    lines: int


EXTENSIONS: Final = (
    Extension("operator, and its ONNX translation", "add_an_operator", 2, 0),
    Extension("schedule primitive", "add_a_primitive", 1, 0),
    Extension("graph pass", "add_a_graph_pass", 1, 1),
    Extension("backend", "add_a_backend", 1, 1),
    Extension("frontend", "add_a_frontend", 1, 1),
    Extension("processor", "add_a_machine", 0, 1),
)


def files_to_add(extension: Extension) -> tuple[list[str], list[str]]:
    """Returns the files or folders under src that a page adds, and the lines that it adds to tables, imports left out."""
    page = ROOT / "docs" / "how_to" / f"{extension.page}.md"
    text = page.read_text(encoding="utf-8")
    added = {Path(m) for m in re.findall(r"^(?:```python |`)(src/\S+?\.py)\b", text, re.M)}
    new = {f.parent if not (ROOT / f.parent).exists() else f for f in added}
    diffs = re.findall(r"^```diff src/\S+\n(.*?)^```$", text, re.M | re.S)
    lines = [line[1:].strip() for diff in diffs for line in diff.splitlines() if line.startswith("+")]
    return sorted(map(str, new)), [line for line in lines if not line.startswith(("from ", "import "))]


def shared_stems() -> Iterator[str]:
    """Yields the stems of several files that are not in `ONE_IDEA`, and those in it that one file alone has."""
    rooms: dict[str, list[str]] = {}
    for p in sources():
        if p.name != "__init__.py":
            rooms.setdefault(p.stem, []).append(str(p.parent.relative_to(SRC)))
    allowed = {stem for stems in ONE_IDEA.values() for stem in stems.split()}
    for stem, found in sorted(rooms.items()):
        if (len(found) > 1) != (stem in allowed):
            yield f"{stem}: {', '.join(found)}"


def lists_of_operators() -> list[str]:
    """Returns the lists of operators that are not allowed."""
    return sorted(test_no_lists_of_operators.found() - set(test_no_lists_of_operators.ALLOWED))


def numbers_of_machines() -> list[str]:
    """Returns the numbers of machines that are not allowed."""
    return [n for n in test_no_numbers.found() if n not in test_no_numbers.ALLOWED]


def counts() -> list[Count]:
    """Returns all counts."""
    added = [(e, *files_to_add(e)) for e in EXTENSIONS]
    return [
        *[Count(f"files to add: {e.name}", files.copy, e.files) for e, files, _ in added],
        *[Count(f"lines in tables to add: {e.name}", lines.copy, e.lines) for e, _, lines in added],
        Count("lists of operators outside of ops/", lists_of_operators, 0),
        Count("notes with keys of text", string_keyed_notes, 0),
        Count("numbers of machines outside of cost/", numbers_of_machines, 0),
        Count(f"folders of more than {FLAT} files", flat_folders, 0),
        Count(f"files of more than {LINES} lines", long_files, 0),
        Count(f"functions of complexity above {COMPLEXITY}", tangled_functions, 8),
        Count("statements that are not formatted", unformatted, 39),
        Count("stems of files for two ideas", shared_stems, 0),
        Count("imports that no tool sees", hidden_imports, 0),
    ]


if __name__ == "__main__":
    found = counts()
    for c in found:
        print(c)
        if len(c.places) > c.limit:
            print(*[f"    {place}" for place in c.places], sep="\n")
    sys.exit(any(len(c.places) > c.limit for c in found))

"""Planting a bug in a copy of the sources, and looking for a test that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.schedule.mutants.patches import Mutant

import weft.native._rt

ROOT: Final = Path(__file__).parents[3]
SLICE: Final = "schedule/fuzz/test_fuzz.py::test_a_slice"
"""What looks for a bug that no other test has found."""
_START: Final = """
import sys
import pytest
sys.meta_path = [f for f in sys.meta_path if "editable" not in type(f).__module__]  # an installed copy goes first otherwise
sys.path.insert(0, sys.argv[1] + "/src")
import weft
MARKS = "not timed and (not slow or sampled)"  # all parameters of long families
if not weft.__file__.startswith(sys.argv[1]):
    sys.exit(f"{weft.__file__} is tested instead of {sys.argv[1]}")
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, "--no-header", *sys.argv[2:]]))
"""


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant: the test that has caught it, or None; and the last lines of what pytest said."""

    mutant: Mutant
    caught_by: str | None
    output: str


def copy_tree(to: Path) -> Path:
    """Copies the sources and tests to *to*, with the native module beside its package."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", to)
    shutil.copy(str(weft.native._rt.__file__), to / "src/weft/native")
    return to


def occurrences(m: Mutant, root: Path = ROOT) -> int:
    """How often the text that a mutant replaces is in its file."""
    return (root / m.file).read_text().count(m.old)


@contextmanager
def planted(m: Mutant, tree: Path) -> Iterator[None]:
    """Has the mutant in *tree* for a while."""
    path = tree / m.file
    before = path.read_text()
    if before.count(m.old) != 1:
        raise ValueError(f"{m.file} has {before.count(m.old)} times what a mutant replaces: {m.old}")
    path.write_text(before.replace(m.old, m.new))
    try:
        yield
    finally:
        path.write_text(before)


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Runs *tests* in *tree* up to the first failure; returns pytest's exit code and what it said."""
    paths = [f"tests/{t}" for t in tests]
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    made = subprocess.run(
        [sys.executable, "-c", _START, str(tree), *paths],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return made.returncode, made.stdout + made.stderr


def look_for(m: Mutant, tree: Path) -> Verdict:
    """Plants a mutant and runs its tests, then the slice of the fuzzing, until something fails."""
    output = ""
    with planted(m, tree):
        for tests in (m.tests, (SLICE,)):
            code, output = run_tests(tree, tests)
            if code == 1:
                failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return Verdict(m, failed[0].split(" - ")[0].split(" ", 1)[-1] if failed else "?", output)
            if code != 0:
                raise RuntimeError(f"the tests of the mutant in {m.file} did not run:\n{output}")
    return Verdict(m, None, output)

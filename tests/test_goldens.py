"""Every golden belongs to a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import COLLECTED, golden_path

TESTS = Path(__file__).parent


def orphans(stored: set[Path], used: set[Path], modules: set[Path]) -> list[Path]:
    """Returns those of the *stored* goldens that no test uses, as far as the collected *modules* can tell."""
    left = sorted(stored - used)
    return [p for p in left if (m := module_of(p)) in modules or not m.exists()]


def module_of(golden: Path) -> Path:
    """Returns the module of tests that a golden belongs to; the inverse of `golden_path`."""
    parts = golden.relative_to(TESTS).parts
    at = len(parts) - 1 - parts[::-1].index("goldens")
    return TESTS.joinpath(*parts[:at], f"test_{parts[at + 1]}.py")


def test_no_golden_is_orphaned(request: pytest.FixtureRequest) -> None:
    """All tests of a module count, those that `-m` or `-k` leave out too."""
    if any("::" in a for a in request.config.args):
        pytest.skip("only some tests of a module were collected")
    items = request.config.stash[COLLECTED]
    used = {golden_path(i) for i in items if "golden" in getattr(i, "fixturenames", ())}
    assert orphans(set(TESTS.rglob("goldens/**/*.txt")), used, {i.path for i in items}) == []


def test_what_is_orphaned() -> None:
    here = Path(__file__)
    used, left, gone = (
        TESTS / "goldens" / m / f"{n}.txt" for m, n in (("goldens", "a"), ("goldens", "b"), ("no", "a"))
    )
    other = TESTS / "schedule" / "primitives" / "loops" / "goldens" / "split" / "a.txt"
    assert orphans({used, left, gone, other}, {used}, {here}) == sorted([left, gone])

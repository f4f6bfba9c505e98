"""The planted bugs still fit the sources, and a few of them are caught."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.schedule.mutants.patches import LOWER, MUTANTS, SCHEDULE, Mutant
from tests.schedule.mutants.plant import ROOT, copy_tree, look_for, occurrences, planted, run_tests


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{Path(m.file).stem}: {m.idea}")
def test_each_fits_one_place(mutant: Mutant) -> None:
    assert occurrences(mutant) == 1
    assert mutant.new not in ("", mutant.old) or mutant.old.endswith("\n")
    assert all((ROOT / "tests" / t).exists() for t in mutant.tests)


def test_there_are_enough() -> None:
    assert len({(m.file, m.old) for m in MUTANTS}) == len(MUTANTS) >= 20


def test_the_sources_are_left_as_they_are(tmp_path: Path) -> None:
    m = MUTANTS[0]
    path = tmp_path / m.file
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / m.file).read_text())
    with planted(m, tmp_path):
        assert m.old not in path.read_text()
    assert path.read_text() == (ROOT / m.file).read_text()
    path.write_text("")
    with pytest.raises(ValueError, match="has 0 times what a mutant replaces"), planted(m, tmp_path):
        pass


@pytest.mark.slow
def test_some_are_caught(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    for m in (next(m for m in SCHEDULE if "split" in m.file), next(m for m in LOWER if "tighten" in m.file)):
        assert run_tests(tree, m.tests)[0] == 0
        assert look_for(m, tree).caught_by is not None

"""Plants each bug in a copy of the sources, and prints which test catches it: python -m tests.schedule.mutants."""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.schedule.mutants.patches import MUTANTS, Mutant
from tests.schedule.mutants.plant import SLICE, Verdict, copy_tree, look_for, run_tests


def main() -> int:
    """Looks for every mutant; returns 1 if one was not caught, or if the tests fail without any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants are looked for at a time")
    parser.add_argument("--only", default="", help="a part of the file or of the idea of the mutants that are wanted")
    options = parser.parse_args()
    wanted = [m for m in MUTANTS if options.only in f"{m.file} {m.idea}"]
    with tempfile.TemporaryDirectory(prefix="weft-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for k in range(options.jobs):
            trees.put(copy_tree(Path(folder, str(k))))
        if not _sound(wanted, trees):
            return 1

        def look(m: Mutant) -> Verdict:
            tree = trees.get()
            try:
                return look_for(m, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = []
            for v in pool.map(look, wanted):
                verdicts.append(v)
                _show(v)
    missed = [v for v in verdicts if v.caught_by is None]
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} mutants were caught")
    return 1 if missed else 0


def _sound(wanted: list[Mutant], trees: SimpleQueue[Path]) -> bool:
    """Runs the tests without any mutant: they must pass."""
    tree = trees.get()
    code, output = run_tests(tree, sorted({t for m in wanted for t in (*m.tests, SLICE)}))
    trees.put(tree)
    if code:
        print(output, "\nthe tests fail without any mutant", sep="")
    return code == 0


def _show(v: Verdict) -> None:
    where = v.mutant.file.removeprefix("src/weft/").removesuffix(".py")
    print(f"{where:32} {v.mutant.idea:62} {v.caught_by or 'NOT CAUGHT'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

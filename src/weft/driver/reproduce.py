"""Runs a pass again on the graph or the program that it crashed on, or a part of a model that is compiled wrongly.

python -m weft.driver.reproduce /tmp/weft-x1y2/fold_constants.npz

The file is the one that the error named. If the pass no longer fails, the resulting graph or program is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from weft.codegen import backend_of
from weft.driver.calibrate import target_here
from weft.driver.checking.check_model import REDUCED, check_saved
from weft.driver.evaluate import NativeEvaluator, evaluation_target
from weft.graph import GRAPH_PASSES, SavedPass, print_graph, reproduce_graph
from weft.loop import print_program
from weft.lower import UNROLLED, passes_for, reproduce, saved_target
from weft.support.errors import InputError
from weft.support.passes import Pass


def run_again(path: Path) -> str:
    """Runs the pass named in the file on the graph (.npz) or program (.txt) in it, and returns the text of the result.

    Raises the pass's own error, and `VerifyError` where the pass breaks the rules of graphs or of programs. A graph for which no
    pass is named is compared with the reference: see `check_model`.
    """
    if path.name == REDUCED:
        return "the model agrees with the reference\n" if check_saved(path) else "the model can't be run here\n"
    if path.suffix == ".npz":
        target = target_here(SavedPass.read(path).target)
        return print_graph(reproduce_graph(path, GRAPH_PASSES, target, NativeEvaluator(evaluation_target(target))))
    target = target_here(saved_target(path))
    own = [Pass(*p) for p in backend_of(target).passes(target)]
    return print_program(reproduce(path, (*passes_for(target), *UNROLLED, *own), target))


def main(arguments: Sequence[str]) -> None:
    """Prints the result of the pass; see `run_again`."""
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        wrong = f"there is no file {' '.join(arguments)!r}" if arguments else "no file is given"
        hint = "python -m weft.driver.reproduce FILE, with the file that the error of a pass named"
        raise SystemExit(str(InputError(wrong, hint=hint)))
    print(run_again(Path(arguments[0])), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

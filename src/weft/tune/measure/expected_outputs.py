"""The expected outputs of a candidate, and their tolerance.

The expected results are those of the loops as the formulas give them, which no schedule has touched. Where these would take too
long, the rules' own kernel stands for them: its schedule is checked like any other, by legality and by tests, not by numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

import numpy as np

from weft.codegen import compile_program, link_here
from weft.driver.evaluate import evaluation_target
from weft.loop import AxisKind, Block, For, Function, Program, Stmt, Store, statements, sub_statements
from weft.lower import lower
from weft.native import _rt
from weft.support.errors import WeftError
from weft.targets import Target
from weft.tune.measure.build_candidate import build
from weft.tune.measure.jobs import BuildJob, Failed
from weft.tune.measure.kernel_arguments import KernelArguments, static_size

Array = np.ndarray[Any, Any]

MOST_STEPS: Final = 1 << 28
"""The iterations up to which the unscheduled loops are run: some tenths of a second."""

MARGIN: Final = 8.0
"""How many times the typical rounding error of a result is still taken for rounding."""

LARGEST_QUANTIZED: Final = 2
"""The bytes up to which an integer may be a float that was quantized, and so rounded the other way."""


class Reference:
    """The arguments for a program's kernels, and the results that they are to have of them; *text* is the program's."""

    def __init__(self, program: Program, text: str, target: Target, seed: int) -> None:
        self.function = program.entry
        code, offset, workspaces = _reference_kernel(program, text, evaluation_target(target))
        for positive in (False, True):  # of roots and logarithms of negative numbers, nothing could be told
            self.arguments = KernelArguments(self.function, seed, positive=positive)
            self.arguments.clear_outputs()
            _rt.call(code, offset, self.arguments.arrays(workspaces), self.arguments.sizes)
            self.outputs = [m.values.copy() for m in self.arguments.outputs]
            if all(_is_finite(x) for x in self.outputs):
                break
        self.depth = reduction_depth(self.function)

    def error(self) -> float:
        """Returns the largest error of the outputs as they are now, relative to the allowed error."""
        pairs = zip(self.arguments.outputs, self.outputs, strict=True)
        return max((relative_error(m.values, wanted, self.depth) for m, wanted in pairs), default=0.0)


def _reference_kernel(program: Program, text: str, target: Target) -> tuple[_rt.Image, int, Sequence[int]]:
    if count_steps(program.entry) <= MOST_STEPS:
        image = link_here([compile_program(lower(program, target), target)], target)
        return _rt.Image(image.code), image.symbols[program.entry.name], ()
    made = build(BuildJob(text, None, target))
    if isinstance(made, Failed):
        raise WeftError(f"the rules' own schedule can't be built: {made.message}", hint="this is a bug in Weft")
    return _rt.Image(made.code), made.offset, made.workspaces


def _is_finite(x: Array) -> bool:
    return x.dtype.kind in "iub" or bool(np.isfinite(x.astype(np.float64)).all())


def count_steps(function: Function) -> int:
    """Returns how many stores the loops of *function* execute, at most."""
    total, stack = 0, list[tuple[Stmt, int]]([(function.body, 1)])
    while stack:
        s, times = stack.pop()
        total += times if isinstance(s, Store) else 0
        inner = times * static_size(s.extent) if isinstance(s, For) else times
        stack += [(b, inner) for b in sub_statements(s)]
    return total


def reduction_depth(function: Function) -> int:
    """Returns the number of terms of the longest reduction."""
    depth = 1
    for block in [s for s in statements(function.body) if isinstance(s, Block)]:
        terms = 1
        for a in block.axes:
            terms *= static_size(a.extent) if a.kind is AxisKind.REDUCE else 1
        depth = max(depth, terms)
    return depth


def relative_error(found: Array, wanted: Array, depth: int) -> float:
    """Returns the largest difference of two arrays divided by the allowed error: above 1 they differ by more than rounding.

    Sums of *depth* terms may be added in any order: their error grows as the root of that (Higham, "Accuracy and Stability of
    Numerical Algorithms", 2002, section 4.2). It is relative to the element, and to the mean size of the results. Integers
    are equal, but for one unit in those so short that they may be quantized floats; infinities and NaNs are in the same places.
    """
    if found.tobytes() == wanted.tobytes():
        return 0.0
    if wanted.dtype.kind in "iub":
        difference = float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max())
        return difference if wanted.itemsize <= LARGEST_QUANTIZED else float("inf")
    x, y = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return float("inf")
    x, y = x[finite], y[finite]
    size = np.abs(y) + sqrt(float(np.square(y).mean())) if y.size else y
    with np.errstate(invalid="ignore"):
        error = np.where(x == y, 0.0, np.abs(x - y) / (size * tolerance(wanted.dtype, depth)))
    return float("inf") if np.isnan(error).any() else float(error.max(initial=0.0))


def tolerance(dtype: np.dtype[Any], depth: int) -> float:
    """Returns the rounding error that is allowed of a sum of *depth* terms, kept as *dtype* and computed in f32 at least."""
    stored = float(_epsilon(dtype))
    computed = min(stored, float(np.finfo(np.float32).eps))
    return MARGIN * (stored + computed * sqrt(depth))


def _epsilon(dtype: np.dtype[Any]) -> float:
    return float(2.0**-7 if dtype.name == "bfloat16" else np.finfo(dtype).eps)

"""The expected outputs of a candidate, and their tolerance.

The expected results are those of the loops as the formulas give them, which no schedule has touched. Where these would take too
long, the rules' own kernel stands for them: its schedule is checked like any other, by legality and by tests, not by numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, sqrt
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
        self._expected = [ExpectedOutput(x, self.depth) for x in self.outputs]

    def error(self) -> float:
        """Returns the largest error of the outputs as they are now, relative to the allowed error."""
        pairs = zip(self.arguments.outputs, self._expected, strict=True)
        return max((expected.relative_error(m.values) for m, expected in pairs), default=0.0)


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


class ExpectedOutput:
    """An output as it is *wanted*, of sums of *depth* terms, with the error that is allowed of each element.

    Sums may be added in any order: their error grows as the root of the terms (Higham, "Accuracy and Stability of Numerical
    Algorithms", 2002, section 4.2). It is relative to the element, and to the mean size of the results. Integers are equal, but
    for one unit in those so short that they may be quantized floats; infinities and NaNs are in the same places.
    """

    def __init__(self, wanted: Array, depth: int) -> None:
        self._wanted = wanted
        self._is_exact = wanted.dtype.kind in "iub"
        if self._is_exact:
            return
        computed = wanted.astype(np.float64)
        self._finite = np.isfinite(computed)
        self._all_finite = bool(self._finite.all())
        sizes = np.abs(computed[self._finite])
        mean = sqrt(float(np.square(sizes).mean())) if sizes.size else 0.0
        precision = np.float64 if wanted.dtype == np.float64 else np.float32  # differences of close numbers are exact
        self._computed = computed[self._finite].astype(precision)
        allowed = ((sizes + mean) * tolerance(wanted.dtype, depth)).astype(precision)
        self._allowed = np.maximum(allowed, np.finfo(precision).tiny)  # where all results are 0

    def relative_error(self, found: Array) -> float:
        """Returns the largest difference of *found* divided by the allowed error: above 1 it is more than rounding explains."""
        wanted = self._wanted
        if found.tobytes() == wanted.tobytes():
            return 0.0
        if self._is_exact:
            difference = float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max())
            return difference if wanted.itemsize <= LARGEST_QUANTIZED else float("inf")
        made = found.astype(self._computed.dtype, copy=False).reshape(-1)
        if not self._all_finite:
            rest = ~self._finite.reshape(-1)
            if not np.array_equal(made[rest], wanted.astype(made.dtype).reshape(-1)[rest], equal_nan=True):
                return float("inf")
            made = made[~rest]
        with np.errstate(invalid="ignore", over="ignore"):
            error = float((np.abs(made - self._computed) / self._allowed).max(initial=0.0))
        return float("inf") if isnan(error) else error


def tolerance(dtype: np.dtype[Any], depth: int) -> float:
    """Returns the rounding error that is allowed of a sum of *depth* terms, kept as *dtype* and computed in f32 at least."""
    stored = float(_epsilon(dtype))
    computed = min(stored, float(np.finfo(np.float32).eps))
    return MARGIN * (stored + computed * sqrt(depth))


def _epsilon(dtype: np.dtype[Any]) -> float:
    return float(2.0**-7 if dtype.name == "bfloat16" else np.finfo(dtype).eps)

"""Compiling a loop program, scheduled by hand or not, to a function that can be called and timed.

s = Schedule(to_program([A, B], [C]))
...
matmul = build_function(s.program)
matmul(a, b, c)                       # arrays in the order of the parameters; c is written
print(2 * n**3 / matmul.time(a, b, c) / 1e9, "GFLOP/s")
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from weft.codegen import compile_program, link_here
from weft.driver.check_target import check_runs_here
from weft.ir import Var
from weft.loop import Program
from weft.lower import lower
from weft.native import _rt
from weft.support.errors import InputError
from weft.targets import Target, parse_target

Array = np.ndarray[Any, np.dtype[Any]]


class NativeFunction:
    """A compiled loop program: call it with an array for each buffer and an integer for each size, in order."""

    def __init__(self, program: Program, target: Target) -> None:
        self.flat = lower(program, target)
        self.image = link_here([compile_program(self.flat, target)], target)
        self.offset = self.image.symbols[program.entry.name]
        self.params = program.entry.params

    def __call__(self, *arguments: Array | int, threads: int = 1) -> None:
        """Runs the function; outputs are written into the arrays given for them."""
        arrays, sizes = self._sorted(arguments)
        _rt.call(self.image.code, self.offset, arrays, sizes, threads=threads)

    def time(self, *arguments: Array | int, threads: int = 1, repeats: int = 15) -> float:
        """Returns the median seconds of a call: processor time for one thread, wall time for more."""
        arrays, sizes = self._sorted(arguments)
        taken = _rt.time_kernel(self.image.code, self.offset, arrays, sizes, threads=threads, repeats=repeats)
        return median(taken) * 1e-9

    def _sorted(self, arguments: tuple[Array | int, ...]) -> tuple[list[Array], list[int]]:
        """Checks the arguments against the parameters, and splits them into arrays and sizes."""
        wanted = ", ".join(str(p.name) for p in self.params)
        if len(arguments) != len(self.params):
            raise InputError(f"{len(arguments)} arguments were given, not {len(self.params)}", hint=f"give ({wanted})")
        arrays: list[Array] = []
        sizes: list[int] = []
        for p, a in zip(self.params, arguments, strict=True):
            if isinstance(p, Var) and isinstance(a, int):
                sizes.append(a)
            elif not isinstance(p, Var) and isinstance(a, np.ndarray) and a.dtype == p.dtype.numpy:
                arrays.append(a)
            else:
                kind = "an integer" if isinstance(p, Var) else f"an array of {p.dtype}"
                raise InputError(f"{p.name} takes {kind}, not {type(a).__name__}", hint="convert it")
        return arrays, sizes


def build_function(program: Program, target: str = "cpu") -> NativeFunction:
    """Lowers and compiles *program* for this machine; raises `LoweringError` where it can't, `InputError` for a wrong target."""
    chosen = parse_target(target)
    check_runs_here(chosen, target, "leave the target out")
    return NativeFunction(program, chosen)

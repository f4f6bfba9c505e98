"""Running programs before and after a pass on the same random inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from weft.codegen.interp import run
from weft.ir import Const, Expr, Var
from weft.loop import Buffer, Program, parse_program, print_program, verify

Array = npt.NDArray[np.generic]


def inputs_of(program: Program, sizes: dict[str, int] | None = None, seed: int = 0) -> list[Array | int]:
    """Random arrays for the buffers of the entry, and *sizes* for its symbols."""
    known = sizes or {}
    made = np.random.default_rng(seed)
    values: list[Array | int] = []
    for p in program.entry.params:
        if isinstance(p, Var):
            values.append(known[p.name])
        else:
            values.append(_random(p, [_size(s, known) for s in p.shape], made))
    return values


def _size(s: Expr, known: dict[str, int]) -> int:
    if isinstance(s, Const):
        return int(s.value)
    assert isinstance(s, Var)
    return known[s.name]


def _random(b: Buffer, shape: list[int], made: np.random.Generator) -> Array:
    if b.dtype.is_float:
        return made.integers(-4, 5, shape).astype(b.dtype.numpy)  # sums of these are exact in any order
    return made.integers(0, 2 if b.dtype.is_bool else 5, shape).astype(b.dtype.numpy)


def results(program: Program, values: list[Array | int]) -> list[Array]:
    """All parameters as the program leaves them, flat; arrays are given in the shape that the program declares."""
    given = [_shaped(v, p) for v, p in zip(values, program.entry.params, strict=True)]
    run(program, given)
    return [np.ravel(np.asarray(v)) for v in given]


def _shaped(value: Array | int, p: Buffer | Var) -> Array | int:
    if isinstance(value, int):
        return value
    return value.reshape(-1).copy() if isinstance(p, Buffer) and p.rank == 1 else value.copy()


def check_equal(before: Program, after: Program, sizes: dict[str, int] | None = None) -> None:
    """Fails unless both leave the same values in the buffers of the entry."""
    values = inputs_of(before, sizes)
    for p, x, y in zip(before.entry.params, results(before, values), results(after, values), strict=True):
        np.testing.assert_array_equal(x, y, f"{p.name} of\n{print_program(after)}")


def before_and_after(text: str, change: Callable[[Program], Program], sizes: dict[str, int] | None = None) -> str:
    """Returns a program's text before and after *change*, having checked that both do the same."""
    before = parse_program(text)
    verify(before)
    after = change(before)
    verify(after)
    check_equal(before, after, sizes)
    return f"{print_program(before)}\n->\n\n{print_program(after)}"

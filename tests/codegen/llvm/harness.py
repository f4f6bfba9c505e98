"""Builds small flat programs, compiles them by each backend whose code runs here, and calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.support.jit import Machine

from weft.codegen import compile_program, link_here
from weft.ir import Expr, Ramp, Var, index
from weft.loop import Buffer, Export, Function, Load, Program, Store, for_
from weft.support.dtypes import DType
from weft.targets import LEVELS, Target, can_run, cpu, parse_target

Array = npt.NDArray[Any]
TARGETS: dict[str, Target] = {
    **{name: cpu(name) for name in LEVELS if can_run(cpu(name))},
    **{name: parse_target(name) for name in ("c", "c-vector") if can_run(parse_target(name))},
}
"""The x86-64 levels that this machine runs, by way of LLVM, and C, where there is a compiler."""


def is_llvm(name: str) -> bool:
    """Tells whether a target's code is made by LLVM, so that its text can be looked at."""
    return TARGETS[name].backend == "llvm"


def at(i: Expr, lanes: int) -> Expr:
    """The index of the i-th group of *lanes* elements."""
    return i if lanes == 1 else Ramp(i * lanes, index(1), lanes)


def elementwise(
    name: str, inputs: Sequence[DType], out: DType, lanes: int, count: int, op: Callable[..., Expr]
) -> Function:
    """A function that writes `op(inputs...)` for each of *count* elements, *lanes* at a time."""
    sources = [Buffer(f"x{k}", [count], t) for k, t in enumerate(inputs)]
    result, i = Buffer("y", [count], out), Var("i")
    values = [Load(s, (at(i, lanes),)) for s in sources]
    body = for_(i, count // lanes, Store(result, (at(i, lanes),), op(*values), None))
    return Function(name, (*sources, result), body, (Export(),))


def machine_for(functions: Sequence[Function], target: Target, pieces: int = 2) -> Machine:
    """Compiles functions together and maps them."""
    module = compile_program(Program(tuple(functions)), target)
    return Machine(link_here([module], target), pieces)


def call(machine: Machine, name: str, *args: Array | int) -> None:
    """Calls a function with arrays and i64 numbers."""
    machine.call(
        name, *[ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in args]
    )


def same(a: Array, b: Array) -> bool:
    """Whether two arrays are equal element by element, a NaN to a NaN and -0.0 to -0.0."""
    if a.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    with np.errstate(invalid="ignore"):
        wide = np.asarray(a, np.float64), np.asarray(b, np.float64)
    signs = np.signbit(wide[0]) == np.signbit(wide[1])
    return bool(np.all(np.where(np.isnan(wide[0]), np.isnan(wide[1]), (wide[0] == wide[1]) & signs)))

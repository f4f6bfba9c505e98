"""Builds small flat programs, compiles them for each x86-64 level that this machine runs, and calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.support.jit import Machine

from weft.codegen.llvm.compile import compile_function_module
from weft.codegen.llvm.link import link
from weft.ir.expr import Expr, Ramp, Var, index
from weft.loop.nodes import Buffer, Function, Load, Program, Store, for_
from weft.support.dtypes import DType
from weft.targets.cpu import LEVELS, can_run, cpu
from weft.targets.target import Target

Array = npt.NDArray[Any]
TARGETS: dict[str, Target] = {name: cpu(name) for name in LEVELS if can_run(cpu(name))}


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
    return Function(name, (*sources, result), body, (("export", 1),))


def machine_for(functions: Sequence[Function], target: Target, pieces: int = 2) -> Machine:
    """Compiles functions together and maps them."""
    object_code = compile_function_module(Program(tuple(functions)), target)
    assert object_code.undefined() == []
    return Machine(link([object_code]), pieces)


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

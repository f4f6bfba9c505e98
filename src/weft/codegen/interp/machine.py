"""Runs programs: translates them once, binds arrays to parameters, and reports faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from weft.codegen.interp.array_memory import Array, allocate, copy_elements, window
from weft.codegen.interp.expressions import RUNTIME
from weft.codegen.interp.faults import FAULTS, NOTES, ExecutionError, explain
from weft.codegen.interp.host_seeds import fresh_seed
from weft.codegen.interp.host_strings import Strings
from weft.codegen.interp.late_arrays import LateArrays
from weft.codegen.interp.source import Source
from weft.codegen.interp.statements import StmtTranslator, symbols_of
from weft.codegen.interp.tokens import Tokens
from weft.ir import Binary, Const, Expr, Node, Var, post_order
from weft.loop import COPY, Buffer, Call, Function, Program, external_module, statements
from weft.support.dtypes import i64
from weft.support.errors import InputError, RuntimeFailure
from weft.targets.instructions import INTRINSICS

Value: TypeAlias = "Array | int | float"
Sizes: TypeAlias = dict[Var, int]
_LIBRARY: Final[dict[str, Callable[..., None]]] = {COPY: copy_elements, "weft.fresh_seed": fresh_seed}
_TRANSLATED: Final[WeakKeyDictionary[Program, dict[str, Any]]] = WeakKeyDictionary()


def run(
    program: Program,
    inputs: Mapping[str, Value] | Sequence[Value],
    function: str | None = None,
    library: Mapping[str, Callable[..., None]] | None = None,
    late: LateArrays | None = None,
) -> None:
    """Runs a function of *program*, by default the entry; arrays are changed in place.

    *inputs* are the parameters in order, or by name: arrays of the declared type and shape, and integers. A size may be left
    out where names are used and the shape of an array tells it. *library* implements the intrinsics that the program calls:
    for an address it receives a flat array and the number of an element in it. *late* is given the outputs of late sizes.
    Raises `InputError` for inputs that do not fit, `RuntimeFailure` when an `Assert` fails, and `ExecutionError` when the program
    is invalid.
    """
    f = program.entry if function is None else program[function]
    if (module := external_module(f)) is not None:
        raise InputError(
            f"{f.name} is declared only: its code is in the module {module}", hint="link the module's program"
        )
    bound = bind_inputs(f, inputs)
    scope = _translated(program)
    scope["h_library"] = {**_LIBRARY, **Strings().library(), **(library or {})}
    scope["h_late"] = late if late is not None else LateArrays()
    tokens = scope["h_tokens"] = Tokens()
    try:
        with np.errstate(all="ignore"):
            scope[f"f_{program.functions.index(f)}"](*bound.arguments, *[bound.sizes[v] for v in symbols_of(f)])
    except FAULTS as e:
        raise explain(e) from None
    bound.copy_back()
    if left := tokens.left():
        raise ExecutionError(f"a token from unit {left[0][0]} to unit {left[0][1]} is left that nothing has taken")


@dataclass(frozen=True, eq=False)
class Bound:
    """Inputs bound to the parameters of a function: flat memory or numbers, in order, and the arrays to copy back to."""

    arguments: list[Any]
    sizes: Sizes
    copied: list[tuple[Array, Array]]

    def copy_back(self) -> None:
        """Writes the contents of copies back to the arrays that were given."""
        for given, copy in self.copied:
            given[...] = copy


def bind_inputs(f: Function, inputs: Mapping[str, Value] | Sequence[Value]) -> Bound:
    """Binds *inputs* to the parameters of *f*; raises `InputError` for inputs that do not fit."""
    values = _in_order(f, inputs)
    sizes = _solve(f, values)
    arguments, copied = _bind(f, values, sizes)
    return Bound(arguments, sizes, copied)


def translate(program: Program) -> Source:
    """Returns the Python source of all functions of *program*."""
    source = Source()
    given = enumerate([*program.functions, *_models(program)])
    names = {f.name: (f"f_{k}", f) for k, f in given if external_module(f) is None}
    translator = StmtTranslator(source, names)
    for python_name, f in names.values():
        translator.function(python_name, f)
    return source


def _models(program: Program) -> list[Function]:
    """Returns the models of the tensor instructions that the program calls."""
    own = {f.name for f in program.functions}
    called = {s.callee: None for f in program.functions for s in statements(f.body) if isinstance(s, Call)}
    return [INTRINSICS[c].model for c in called if c in INTRINSICS and c not in own]


def _translated(program: Program) -> dict[str, Any]:
    """Returns the globals of the translated program; it is translated only the first time."""
    scope = _TRANSLATED.get(program)
    if scope is None:
        source = translate(program)
        helpers = {"h_window": window, "h_allocate": allocate, "h_outside": _outside, "h_fail": _fail, "h_i64": i64}
        scope = {**RUNTIME, **helpers, **source.constants, NOTES: source.notes}
        exec(compile("\n".join(source.lines) + "\n", "<interpreted program>", "exec"), scope)
        _TRANSLATED[program] = scope
    return scope


def _outside(axis: str, value: int, extent: int) -> NoReturn:
    raise IndexError(f"the axis {axis} is {value}, outside of 0 .. {extent - 1}")


def _fail(message: str, *values: Any) -> NoReturn:
    raise RuntimeFailure(message.format(*values))


def _in_order(f: Function, inputs: Mapping[str, Value] | Sequence[Value]) -> list[Value | None]:
    """Returns the inputs in the order of the parameters; sizes that arrays tell may be None."""
    if isinstance(inputs, Mapping):
        named = {p.name: p for p in f.params}
        if unknown := [n for n in inputs if n not in named]:
            raise InputError(f"{f.name} has no parameter {unknown[0]}; it has {', '.join(named)}")
        return [inputs.get(p.name) for p in f.params]
    if len(inputs) != len(f.params):
        raise InputError(f"{f.name} takes {len(f.params)} inputs, not {len(inputs)}")
    return list(inputs)


def _solve(f: Function, values: Sequence[Value | None]) -> Sizes:
    """Returns the value of every integer parameter and of every size that only a shape names."""
    sizes: Sizes = {}
    for p, v in zip(f.params, values, strict=True):
        if isinstance(p, Var) and v is not None and not p.dtype.is_float:
            sizes[p] = int(v)
    for p, v in zip(f.params, values, strict=True):
        if isinstance(p, Buffer) and isinstance(v, np.ndarray):
            for dimension, length in zip(p.shape, v.shape, strict=False):
                if isinstance(dimension, Var):
                    sizes.setdefault(dimension, length)
    for size in [*symbols_of(f), *[p for p in f.params if isinstance(p, Var) and not p.dtype.is_float]]:
        if size not in sizes:
            raise InputError(f"{f.name} needs the value of {size.name}, which no input tells")
    return sizes


def _bind(f: Function, values: Sequence[Value | None], sizes: Sizes) -> tuple[list[Any], list[tuple[Array, Array]]]:
    """Returns the arguments of the translated function, and which arrays are to be copied back afterwards."""
    arguments: list[Any] = []
    copied: list[tuple[Array, Array]] = []
    for p, v in zip(f.params, values, strict=True):
        if isinstance(p, Var):
            arguments.append(p.dtype.numpy.type(v) if p.dtype.is_float else sizes[p])
            continue
        array = _checked(f, p, v, sizes)
        if p.strides is None and array.flags.c_contiguous:
            arguments.append((array.reshape(-1), 0))
            continue
        strides = None if p.strides is None else [evaluate(s, sizes) for s in p.strides]
        flat, copy = allocate(p.dtype, [evaluate(s, sizes) for s in p.shape], strides)
        copy[...] = array
        arguments.append((flat, 0))
        copied.append((array, copy))
    return arguments, copied


def _checked(f: Function, p: Buffer, v: Value | None, sizes: Sizes) -> Array:
    """Returns the array given for a buffer, if it has its type and shape."""
    if not isinstance(v, np.ndarray):
        raise InputError(f"{f.name} needs an array for {p.name}, not {v!r}")
    if v.dtype != p.dtype.numpy:
        raise InputError(f"{p.name} is {p.dtype.numpy}, but the array given is {v.dtype}")
    shape = [evaluate(s, sizes) for s in p.shape] + ([p.dtype.lanes] if p.dtype.lanes > 1 else [])
    if list(v.shape) != shape:
        raise InputError(f"the shape of {p.name} is {shape}, but that of the array given is {list(v.shape)}")
    return v


def evaluate(e: Expr, sizes: Mapping[Var, int]) -> int:
    """Returns the value of an index expression of constants, sizes and operators."""
    known: dict[Node, int] = {}
    for n in post_order(e):
        if isinstance(n, Const):
            known[n] = int(n.value)
        elif isinstance(n, Var):
            known[n] = sizes[n]
        elif isinstance(n, Binary):
            known[n] = int(n.numpy(known[n.a], known[n.b]))
        else:
            raise InputError(f"a shape may not contain a {type(n).__name__}")
    return known[e]

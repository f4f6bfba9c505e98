"""Python source for expressions: one assignment a node, so that nothing is computed twice and nothing nests too deeply.

Scalars are Python integers and bools or NumPy float scalars; vectors are NumPy arrays. `Select`, `And` and `Or` become `if`
statements; of vectors, each side is computed under a mask of the lanes that choose it, which the loads in it obey.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from weft import ir
from weft.codegen.interp import scalars, vectors
from weft.codegen.interp.source import Source
from weft.ir import INTRINSICS, Dot, Expr, Names, Var, dot
from weft.loop import Address, Buffer, Load
from weft.support.dtypes import DType, i64
from weft.support.errors import LoweringError

RUNTIME: Final[dict[str, Any]] = {
    "h_truncdiv": scalars.truncdiv,
    "h_truncmod": scalars.truncmod,
    "h_to_int": scalars.to_int,
    "h_to_float": scalars.to_float,
    "h_plain": scalars.plain,
    "h_reinterpret": scalars.reinterpret,
    "h_wrap": scalars.wrap,
    "h_ramp": vectors.ramp,
    "h_gather": vectors.gather,
    "h_scatter": vectors.scatter,
    "h_vtruncdiv": vectors.truncdiv,
    "h_converted": vectors.converted,
    "h_applied": vectors.applied,
    "h_dot": dot,
    "h_shuffle": vectors.shuffle,
    "np": np,
}
"""The functions that the generated source calls."""

_PYTHON: Final[dict[type[Expr], str]] = {
    ir.Add: "+",
    ir.Sub: "-",
    ir.Mul: "*",
    ir.Div: "/",
    ir.FloorDiv: "//",
    ir.FloorMod: "%",
    ir.BitAnd: "&",
    ir.BitOr: "|",
    ir.BitXor: "^",
    ir.ShiftLeft: "<<",
    ir.ShiftRight: ">>",
    ir.Lt: "<",
    ir.Le: "<=",
    ir.Eq: "==",
    ir.Ne: "!=",
}
_MAY_WRAP: Final = (ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.TruncDiv, ir.ShiftLeft)


class ExprTranslator:
    """Writes the source that computes expressions, and returns the names of their values."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.mask: tuple[str, int] | None = None  # the active lanes, and how many lanes there are
        self.names: dict[Var | Buffer, str] = {}
        self.buffers: set[Buffer] = set()
        self._readable = Names()
        self.not_negative: set[Expr] = set()

    def name(self, thing: Var | Buffer) -> str:
        """Returns the Python name of a variable or buffer."""
        made = self.names.get(thing)
        if made is None:
            made = self.names[thing] = f"{'b' if isinstance(thing, Buffer) else 'x'}_{self._readable.of(thing)}"
        return made

    def memory(self, buffer: Buffer) -> str:
        """Returns the Python name of a buffer that must be in scope."""
        if buffer not in self.buffers:
            raise LoweringError(f"the buffer {buffer.name} is not in scope", hint="verify the program first")
        return self.name(buffer)

    def value(self, root: Expr) -> str:
        """Writes the source that computes *root*; returns the name or literal that holds it."""
        known = self.source.known
        stack = [root]
        while stack:
            e = stack[-1]
            if e in known:
                stack.pop()
                continue
            now = self.strict(e)
            if todo := [k for k in now if k not in known]:
                stack += reversed(todo)
                continue
            stack.pop()
            self.source.learn(e, _WRITERS.get(type(e), _unknown)(self, e))
        return known[root]

    def strict(self, e: Expr) -> tuple[Expr, ...]:
        """Returns the operands that are always evaluated."""
        if isinstance(e, ir.Select):
            return (e.cond,)
        if isinstance(e, ir.And | ir.Or):
            return (e.a,)
        return e.children()  # type: ignore[return-value]

    def assign(self, code: str) -> str:
        """Writes an assignment to a new name, and returns that."""
        name = self.source.fresh()
        self.source.line(f"{name} = {code}")
        return name

    def dtype(self, dtype: DType) -> str:
        """Returns the name of a global that holds a data type."""
        return self.source.constant(dtype, dtype)

    def mask_for(self, lanes: int) -> str:
        """Returns the mask that applies to vectors of this many lanes."""
        return self.mask[0] if self.mask is not None and self.mask[1] == lanes else "None"

    @contextmanager
    def masked(self, mask: str, lanes: int) -> Any:
        """Runs the source written inside only in the lanes of *mask*, and not at all if there are none."""
        outer = self.mask
        with self.source.suite(f"if {mask}.any():"):
            self.mask = (mask, lanes)
            yield
        self.mask = outer

    def guard(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[str, ...]:
        """Writes checks against negative indices, where one is possible; NumPy itself checks the other end."""
        names, access = tuple([self.value(i) for i in indices]), (buffer.name, self.name(buffer))
        for e, name in zip(indices, names, strict=True):
            if e.dtype.lanes == 1 and not self.is_not_negative(e):
                self.source.line(f"if {name} < 0: raise IndexError('index out of bounds')", *access, names)
        return names

    def is_not_negative(self, e: Expr) -> bool:
        """Answers whether *e* is evidently zero or more."""
        match e:
            case ir.Const(value):
                return value >= 0
            case ir.Add(a, b) | ir.Mul(a, b) | ir.FloorDiv(a, b) | ir.Min(a, b):
                return self.is_not_negative(a) and self.is_not_negative(b)
            case ir.FloorMod(_, ir.Const(b)):
                return b > 0
        return e in self.not_negative


Writer = Callable[[ExprTranslator, Any], str]
W = TypeVar("W", bound=Writer)
_WRITERS: Final[dict[type[Expr], Writer]] = {}


def _writes(*types: type[Expr]) -> Callable[[W], W]:
    def add(writer: W) -> W:
        _WRITERS.update(dict.fromkeys(types, writer))
        return writer

    return add


def _unknown(t: ExprTranslator, e: Expr) -> str:
    what = f"the variable {e.name} is not in scope" if isinstance(e, Var) else f"a {type(e).__name__} cannot be run"
    raise LoweringError(what, hint="verify the program first")


@_writes(ir.Const)
def _const(t: ExprTranslator, e: ir.Const) -> str:
    if e.dtype.is_storage:
        return t.source.constant(scalars.constant(e), (0, e.dtype))
    if isinstance(e.value, float):
        return t.source.constant(scalars.constant(e), (e.value.hex(), e.dtype))
    return f"({e.value})" if e.value < 0 else str(e.value)


@_writes(*_PYTHON)
def _operator(t: ExprTranslator, e: ir.Binary) -> str:
    known = t.source.known
    return _wrapped(t, e, f"{known[e.a]} {_PYTHON[type(e)]} {known[e.b]}")


def _wrapped(t: ExprTranslator, e: Expr, code: str) -> str:
    """Assigns the result of integer arithmetic, wrapped to its type; `i64` is wrapped only when it is stored."""
    dtype = e.dtype
    if dtype.is_int and dtype.lanes == 1 and dtype is not i64 and isinstance(e, (*_MAY_WRAP, ir.Neg, ir.Not, ir.Apply)):
        half = 1 << (dtype.bits - 1)
        mask = (1 << dtype.bits) - 1
        code = f"({code}) & {mask}" if dtype.kind == "uint" else f"(({code}) + {half} & {mask}) - {half}"
    return t.assign(code)


@_writes(ir.TruncDiv, ir.TruncMod)
def _truncate(t: ExprTranslator, e: ir.TruncDiv | ir.TruncMod) -> str:
    a, b = t.source.known[e.a], t.source.known[e.b]
    if e.dtype.lanes == 1:
        return _wrapped(t, e, f"h_{e.symbol}({a}, {b})")
    return t.assign(f"h_vtruncdiv({a}, {b})" if isinstance(e, ir.TruncDiv) else f"np.fmod({a}, {b})")


@_writes(ir.Min, ir.Max)
def _extreme(t: ExprTranslator, e: ir.Min | ir.Max) -> str:
    a, b = t.source.known[e.a], t.source.known[e.b]
    if e.dtype.lanes > 1:
        return t.assign(f"np.{'minimum' if isinstance(e, ir.Min) else 'maximum'}({a}, {b})")
    propagate = f" or {a} != {a}" if e.dtype.is_float else ""
    return t.assign(f"{a} if {a} {'<' if isinstance(e, ir.Min) else '>'} {b}{propagate} else {b}")


@_writes(ir.Neg)
def _neg(t: ExprTranslator, e: ir.Neg) -> str:
    return _wrapped(t, e, f"-{t.source.known[e.a]}")


@_writes(ir.Not)
def _not(t: ExprTranslator, e: ir.Not) -> str:
    a = t.source.known[e.a]
    return t.assign(f"not {a}") if e.dtype.is_bool and e.dtype.lanes == 1 else _wrapped(t, e, f"~{a}")


@_writes(ir.And, ir.Or)
def _logic(t: ExprTranslator, e: ir.And | ir.Or) -> str:
    both, a, s = isinstance(e, ir.And), t.source.known[e.a], t.source
    result = t.assign(a)
    if e.dtype.lanes == 1:
        with s.suite(f"if {'' if both else 'not '}{a}:"):
            s.line(f"{result} = {t.value(e.b)}")
        return result
    mask = _narrowed(t, a if both else f"~{a}", e.dtype.lanes)
    with t.masked(mask, e.dtype.lanes):
        s.line(f"{result} = {a} {'&' if both else '|'} {t.value(e.b)}")
    return result


def _narrowed(t: ExprTranslator, condition: str, lanes: int) -> str:
    """Returns the mask of the lanes that are active now and for which *condition* holds."""
    outer = t.mask_for(lanes)
    return t.assign(condition if outer == "None" else f"{outer} & {condition}")


@_writes(ir.Select)
def _select(t: ExprTranslator, e: ir.Select) -> str:
    if e.cond.dtype.lanes > 1:
        return _select_lanes(t, e)
    # A chain of selects becomes a flat series of tests, for Python limits how deep suites nest.
    s, result, chosen = t.source, t.source.fresh(), t.source.fresh()
    s.line(f"{chosen} = {result} = None")
    with s.suite(f"if {s.known[e.cond]}:"):
        s.line(f"{result}, {chosen} = {t.value(e.then)}, True")
    rest = e.other
    while isinstance(rest, ir.Select) and rest.cond.dtype.lanes == 1 and rest not in s.known:
        with s.suite(f"if not {chosen}:"):
            cond = t.value(rest.cond)
            with s.suite(f"if {cond}:"):
                s.line(f"{result}, {chosen} = {t.value(rest.then)}, True")
        rest = rest.other
    with s.suite(f"if not {chosen}:"):
        s.line(f"{result} = {t.value(rest)}")
    return result


def _select_lanes(t: ExprTranslator, e: ir.Select) -> str:
    """Chooses lane by lane: each side is computed under the mask of the lanes that choose it."""
    s, lanes, cond = t.source, e.dtype.lanes, t.source.known[e.cond]
    nothing = s.constant(np.zeros(lanes, e.dtype.numpy), ("zeros", e.dtype))
    then, other = t.assign(nothing), t.assign(nothing)
    for result, side, condition in ((then, e.then, cond), (other, e.other, f"~{cond}")):
        with t.masked(_narrowed(t, condition, lanes), lanes):
            s.line(f"{result} = {t.value(side)}")
    return t.assign(f"np.where({cond}, {then}, {other})")


@_writes(ir.Cast)
def _cast(t: ExprTranslator, e: ir.Cast) -> str:
    a, source, target = t.source.known[e.a], e.a.dtype, e.dtype
    to = t.dtype(target)
    if target.lanes > 1:
        return t.assign(f"h_converted({a}, {to})")
    if target.is_bool:
        return t.assign(f"{a} != 0")
    if target.is_float:
        kind = t.source.constant(target.numpy.type, (target, "type"))
        return t.assign(f"h_to_float(int({a}), {to})" if not source.is_float else f"{kind}({a})")
    return t.assign(f"h_to_int({a}, {to})" if source.is_float else f"h_wrap(int({a}), {to})")


@_writes(ir.Reinterpret)
def _reinterpret(t: ExprTranslator, e: ir.Reinterpret) -> str:
    return t.assign(f"h_reinterpret({t.source.known[e.a]}, {t.dtype(e.a.dtype)}, {t.dtype(e.dtype)})")


@_writes(ir.Ramp)
def _ramp(t: ExprTranslator, e: ir.Ramp) -> str:
    return t.assign(f"h_ramp({t.source.known[e.base]}, {t.source.known[e.stride]}, {t.dtype(e.dtype)})")


@_writes(ir.Broadcast)
def _broadcast(t: ExprTranslator, e: ir.Broadcast) -> str:
    kind = t.source.constant(e.dtype.numpy, e.dtype.numpy)
    return t.assign(f"np.full({e.lanes}, {t.source.known[e.value]}, {kind})")


@_writes(ir.Apply)
def _apply(t: ExprTranslator, e: ir.Apply) -> str:
    args = ", ".join([t.source.known[a] for a in e.args])
    fn = t.source.constant(INTRINSICS[e.fn].reference, INTRINSICS[e.fn].reference)
    if e.dtype.lanes > 1:
        return t.assign(f"h_applied({fn}, {t.dtype(e.dtype)}, {args})")
    if e.args[0].dtype.is_float:
        return t.assign(f"h_plain({fn}({args}), {t.dtype(e.dtype)})")
    return _wrapped(t, e, f"int({fn}({args}))")


@_writes(ir.Shuffle)
def _shuffle(t: ExprTranslator, e: ir.Shuffle) -> str:
    a, b = t.source.known[e.a], t.source.known[e.b]
    return t.assign(f"h_shuffle({a}, {b}, {list(e.picks)})")


@_writes(Dot)
def _dot(t: ExprTranslator, e: Dot) -> str:
    given = [f"np.atleast_1d(np.asarray({t.source.known[x]}, {_numpy(t, x)}))" for x in (e.acc, e.a, e.b)]
    made = f"h_dot({', '.join(given)})"
    return t.assign(made if e.dtype.lanes > 1 else f"h_plain({made}[0], {t.dtype(e.dtype)})")


def _numpy(t: ExprTranslator, e: Expr) -> str:
    return t.source.constant(e.dtype.numpy, e.dtype.numpy)


@_writes(Load)
def _load(t: ExprTranslator, e: Load) -> str:
    buffer, name = e.buffer, t.memory(e.buffer)
    indices = t.guard(buffer, e.indices)
    listed = "".join([f"{i}, " for i in indices])
    lanes = max([i.dtype.lanes for i in e.indices], default=1)
    result = t.source.fresh()
    if lanes > 1:
        code = f"h_gather({name}, ({listed}), {t.mask_for(e.dtype.lanes)})"
    elif e.dtype.lanes > 1:
        code = f"{name}[({listed})].copy()"
    else:
        code = f"{name}[{listed or '()'}]" if e.dtype.is_float or e.dtype.is_storage else f"{name}.item({listed})"
    t.source.line(f"{result} = {code}", buffer.name, name, indices)
    return result


@_writes(Address)
def _address(t: ExprTranslator, e: Address) -> str:
    name = t.memory(e.buffer)
    terms = zip([t.source.known[i] for i in e.indices], e.buffer.row_major_strides(), strict=True)
    offset = " + ".join([f"{i} * {t.value(s)}" for i, s in terms]) or "0"
    lanes = f"({offset}) * {e.buffer.dtype.lanes}" if e.buffer.dtype.lanes > 1 else offset
    return t.assign(f"({name}_flat, {lanes})")

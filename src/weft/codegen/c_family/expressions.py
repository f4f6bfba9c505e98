"""Expressions as C: scalars, and vectors lane by lane or, where the target has them and a type fits, as whole vectors."""

from __future__ import annotations

from typing import Final

from weft import ir
from weft.codegen.c_family import scalars
from weft.codegen.c_family.c_types import scalar_type
from weft.codegen.c_family.writer import Mask, Value, Vector, Writer, writes
from weft.ir import Binary, Dot, Expr
from weft.support.dtypes import DType, bf16, f32, i32

_DIVISIONS: Final = (ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod)
_COMPARISONS: Final = (ir.Lt, ir.Le, ir.Eq, ir.Ne)


def is_whole(f: Writer, dtype: DType) -> bool:
    """Tells whether values of *dtype* are whole vectors in C: of a power of two of lanes, of a type that C computes with."""
    words = f.dialect.vectors
    if words is None or (words.feature is not None and not f.target.has(words.feature)):
        return False
    if dtype.lanes == 1 or dtype.lanes & (dtype.lanes - 1) or dtype.lanes > words.lanes:
        return False
    return (dtype.is_float and dtype.bits >= 32) or (dtype.is_int and dtype.bits <= 32)


def lanes(f: Writer, e: Expr) -> tuple[str, ...]:
    """Returns the scalars of the lanes of *e*."""
    made = f.value(e)
    if isinstance(made, str):
        return (made,)
    if isinstance(made, tuple):
        return made
    made = f.known[-1][e] = f.named(e.dtype, made)
    end = "" if isinstance(made, Vector) else " != 0"
    each = [f.words.lane(made.text, i) for i in range(e.dtype.lanes)]
    return tuple([f"({x}{end})" if end else x for x in each])


def vector(f: Writer, e: Expr) -> str:
    """Returns *e*, of a type for which `is_whole` holds, as one vector."""
    made = f.value(e)
    if isinstance(made, Vector):
        return made.text
    built = f.named(e.dtype, Vector(f.words.made(f.vector_type(e.dtype), lanes(f, e))))
    f.known[-1][e] = built
    return built.text


@writes(ir.Var)
def _variable(f: Writer, e: ir.Var) -> Value:
    return f"({scalar_type(e.dtype)}){f.name(e)}" if e in f.narrow else f.name(e)


@writes(ir.Const)
def _const(f: Writer, e: ir.Const) -> Value:
    return scalars.constant(f, e.value, e.dtype)


@writes(ir.Broadcast)
def _broadcast(f: Writer, e: ir.Broadcast) -> Value:
    x = f.atom(e.value)
    if is_whole(f, e.dtype):
        return Vector(f.words.made(f.vector_type(e.dtype), [x] * e.lanes))
    return (x,) * e.lanes


@writes(ir.Ramp)
def _ramp(f: Writer, e: ir.Ramp) -> Value:
    if e.lanes == 1:
        return f.value(e.base)
    base, dtype = f.atom(e.base), e.dtype.element
    if isinstance(e.stride, ir.Const):
        steps = [scalars.constant(f, i * int(e.stride.value), dtype) for i in range(e.lanes)]
    else:
        step = f.atom(e.stride)
        steps = [f"({scalar_type(dtype)})({i} * {step})" for i in range(e.lanes)]
    return tuple([base if s in ("0", "0u") else f"({scalar_type(dtype)})({base} + {s})" for s in steps])


@writes(ir.Add, ir.Sub, ir.Mul, ir.Div, ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod, ir.Min, ir.Max)
@writes(ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight, ir.Lt, ir.Le, ir.Eq, ir.Ne, ir.Neg, ir.Not)
@writes(ir.Apply)
def _operator(f: Writer, e: Expr) -> Value:
    operands = [k for k in e.children() if isinstance(k, Expr)]
    if e.dtype.lanes == 1:
        made = scalars.lane_of(f, e, [f.scalar(k) for k in operands])
        return if_any(f, made) if isinstance(e, _DIVISIONS) and f.may_trap(e) else made
    if all(is_whole(f, k.dtype) for k in operands):
        whole = _whole(f, e, operands)
        if whole is not None:
            return whole
    masks = [m for k in operands if isinstance(m := f.value(k), Mask)]
    if isinstance(e, ir.Not) and masks:
        return Mask(f"(~{masks[0].text})", masks[0].bits)
    return _lane_by_lane(f, e, operands)


@writes(ir.Cast)
def _cast(f: Writer, e: ir.Cast) -> Value:
    return f.name(e.a) if e.dtype is i32 and isinstance(e.a, ir.Var) and e.a in f.narrow else _operator(f, e)


def _lane_by_lane(f: Writer, e: Expr, operands: list[Expr]) -> Value:
    """Returns an operator of vectors as one of each lane; a division that may trap divides in the lanes of the mask alone."""
    columns = zip(*[lanes(f, k) for k in operands], strict=True)
    if isinstance(e, _DIVISIONS) and f.may_trap(e):
        return tuple([_if_on(f, i, scalars.lane_of(f, e, list(c)), "0") for i, c in enumerate(columns)])
    return tuple([scalars.lane_of(f, e, list(c)) for c in columns])


def if_any(f: Writer, text: str) -> str:
    """Returns *text*, a scalar, evaluated only if the current mask has any active lane; it is not used otherwise."""
    return f"(({' || '.join(f.masks[-1])}) ? {text} : 0)" if f.masks else text


def _if_on(f: Writer, lane: int, text: str, other: str) -> str:
    """Returns *text*, evaluated only where the current mask has its lane active."""
    return f"({f.masks[-1][lane]} ? {text} : {other})" if f.masks else text


def _whole(f: Writer, e: Expr, operands: list[Expr]) -> Value | None:
    """Returns an operator on whole vectors; None for operators that C has only for scalars."""
    dtype = operands[0].dtype
    if isinstance(e, ir.Cast):
        to_int = e.dtype.is_int and dtype.is_float
        if to_int or not is_whole(f, e.dtype):
            return None
        return Vector(f.words.converted(f.vector_type(e.dtype), vector(f, e.a)))
    given = [vector(f, k) for k in operands]
    if isinstance(e, _COMPARISONS):
        return Mask(f"({given[0]} {scalars.SYMBOLS[type(e)]} {given[1]})", dtype.bits)
    if isinstance(e, (ir.Min, ir.Max)):
        return _extremum(f, e, *[_name(f, dtype, x) for x in given])
    if isinstance(e, ir.Neg) and dtype.is_float:
        return Vector(f"(-{given[0]})")
    return _arithmetic(f, e, dtype, given) if isinstance(e, Binary) and type(e) in scalars.SYMBOLS else None


def _arithmetic(f: Writer, e: Binary, dtype: DType, given: list[str]) -> Value | None:
    """Returns an operation on two whole vectors that C has an operator for, else None; integers wrap around."""
    symbol = scalars.SYMBOLS[type(e)]
    if dtype.is_float:
        return Vector(f"({given[0]} {symbol} {given[1]})")
    if not isinstance(e, (ir.Add, ir.Sub, ir.Mul, ir.BitAnd, ir.BitOr, ir.BitXor)):
        return None
    a, b = [_same_bits(f, DType("uint", dtype.bits, dtype.lanes), x) for x in given]
    return Vector(f"({_same_bits(f, dtype, f'({a} {symbol} {b})')})")


def _name(f: Writer, dtype: DType, x: str) -> str:
    return f.named(dtype, Vector(x)).text


def _extremum(f: Writer, e: Binary, a: str, b: str) -> Value:
    symbol = "<" if isinstance(e, ir.Min) else ">"
    mask = f"({a} {symbol} {b})" + (f" | ({a} != {a})" if e.dtype.is_float else "")
    return chosen(f, e.dtype, f"({mask})", a, b)


def chosen(f: Writer, dtype: DType, mask: str, a: str, b: str) -> Vector:
    """Returns *a* in the lanes of *mask*, integers as wide as the lanes, and *b* in the others."""
    bits = DType("int", dtype.bits, dtype.lanes)
    name = f.named(bits, Vector(_same_bits(f, bits, mask))).text
    then, other = [_same_bits(f, bits, x) for x in (a, b)]
    return Vector(f"({_same_bits(f, dtype, f'(({then} & {name}) | ({other} & ~{name}))')})")


def _same_bits(f: Writer, dtype: DType, value: str) -> str:
    return f.words.same_bits(f.vector_type(dtype), value)


@writes(ir.Shuffle)
def _shuffle(f: Writer, e: ir.Shuffle) -> Value:
    """Picks lanes of two vectors: by one instruction or a few where C's compiler has shuffles, and they are whole."""
    if is_whole(f, e.dtype) and e.dtype is e.a.dtype:
        numbers = f.vector_type(DType("int", e.dtype.bits, e.dtype.lanes))
        return f.named(e.dtype, Vector(f.words.shuffled(numbers, vector(f, e.a), vector(f, e.b), e.picks)))
    given = (*lanes(f, e.a), *lanes(f, e.b))
    return tuple([given[p] for p in e.picks])


@writes(ir.Reinterpret)
def _reinterpret(f: Writer, e: ir.Reinterpret) -> Value:
    if e.a.dtype.lanes == e.dtype.lanes:
        return _operator(f, e)
    kinds = [scalar_type(t) for t in (e.a.dtype, e.dtype)]
    name = f.fresh("u")
    given = ", ".join(lanes(f, e.a))
    f.local(
        name,
        f"const union {{ {kinds[0]} a[{e.a.dtype.lanes}]; {kinds[1]} b[{e.dtype.lanes}]; }} {name} = {{{{{given}}}}};",
    )
    made = tuple([f"{name}.b[{i}]" for i in range(e.dtype.lanes)])
    return made if len(made) > 1 else made[0]


@writes(ir.Select)
def _select(f: Writer, e: ir.Select) -> Value:
    if e.cond.dtype.lanes > 1:
        return _select_lanes(f, e)
    cond = f.scalar(e.cond)
    if e.dtype.lanes == 1 and not (f.may_trap(e.then) or f.may_trap(e.other)):
        return f"({cond} ? {f.scalar(e.then)} : {f.scalar(e.other)})"
    names = [f.fresh("s") for _ in range(e.dtype.lanes)]
    f.line(f"{scalar_type(e.dtype)} {', '.join(names)};")
    for head, side in ((f"if ({cond})", e.then), ("else", e.other)):
        with f.suite(head):
            for name, x in zip(names, lanes(f, side), strict=True):
                f.line(f"{name} = {x};")
    return tuple(names) if len(names) > 1 else names[0]


def _select_lanes(f: Writer, e: ir.Select) -> Value:
    """Chooses lane by lane; a side that may fault is computed only in the lanes that choose it."""
    if not (f.may_trap(e.then) or f.may_trap(e.other)):
        cond = f.value(e.cond)
        if isinstance(cond, Mask) and cond.bits == e.dtype.bits and is_whole(f, e.dtype):
            return chosen(f, e.dtype, cond.text, vector(f, e.then), vector(f, e.other))
        sides = [lanes(f, e.then), lanes(f, e.other)]
    else:
        conds = tuple([f.temporary(e.cond.dtype.element, c) for c in lanes(f, e.cond)])
        sides = [masked(f, e.then, conds), masked(f, e.other, tuple([f"!{c}" for c in conds]))]
        return _ternary(conds, sides)
    return _ternary(lanes(f, e.cond), sides)


def _ternary(conds: tuple[str, ...], sides: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple([f"({c} ? {x} : {y})" for c, x, y in zip(conds, *sides, strict=True)])


def masked(f: Writer, e: Expr, conds: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the lanes of *e*, computed only where *conds* and the mask in force hold."""
    if f.masks and len(f.masks[-1]) == len(conds):
        conds = tuple([f"({a} && {b})" for a, b in zip(f.masks[-1], conds, strict=True)])
    f.masks.append(tuple([f.temporary(DType("bool", 1), c) for c in conds]))
    with f.scope():
        made = lanes(f, e)
        made = tuple([f.temporary(e.dtype.element, x) for x in made])
    f.masks.pop()
    return made


@writes(ir.And, ir.Or)
def _logic(f: Writer, e: Binary) -> Value:
    if e.dtype.lanes > 1:
        return _logic_lanes(f, e, both=isinstance(e, ir.And))
    return short_circuit(f, e, declaring="bool")


def short_circuit(f: Writer, e: Binary, declaring: str) -> str:
    """Writes `e.a and e.b`, or `or`, of scalars, where statements that *e.b* needs run only if it decides the result.

    *declaring* is the word that declares a variable.
    """
    both, a = isinstance(e, ir.And), f.scalar(e.a)
    if not f.may_trap(e.b):
        return f"({a} {'&&' if both else '||'} {f.scalar(e.b)})"
    name = f.fresh("c")
    f.line(f"{declaring} {name} = {a};")
    with f.suite(f"if ({'' if both else '!'}{name})"):
        f.line(f"{name} = {f.scalar(e.b)};")
    return name


def _logic_lanes(f: Writer, e: Binary, *, both: bool) -> Value:
    symbol = "&" if both else "|"
    if not f.may_trap(e.b):
        x, y = f.value(e.a), f.value(e.b)
        if isinstance(x, Mask) and isinstance(y, Mask) and x.bits == y.bits:
            return Mask(f"({x.text} {symbol} {y.text})", x.bits)
        pairs = zip(lanes(f, e.a), lanes(f, e.b), strict=True)
    else:
        conds = tuple([f.temporary(DType("bool", 1), c) for c in lanes(f, e.a)])
        pairs = zip(conds, masked(f, e.b, conds if both else tuple([f"!{c}" for c in conds])), strict=True)
    return tuple([f"({a} {symbol * 2} {b})" for a, b in pairs])


@writes(Dot)
def _dot(f: Writer, e: Dot) -> Value:
    """Writes the sums of products of integers out; those of bf16 have rules of their own, which C's floats do not follow."""
    if e.a.dtype.element is bf16 or e.dtype.element is f32:
        raise f.error(
            f"{f.dialect.name} has no dot product of {e.a.dtype}", hint="tensorize with an intrinsic of this target"
        )
    acc, a, b = lanes(f, e.acc), lanes(f, e.a), lanes(f, e.b)
    group = len(a) // len(acc)
    made = []
    for n, c in enumerate(acc):
        terms = [f"(uint32_t)({a[group * n + k]} * {b[group * n + k]})" for k in range(group)]
        made.append(scalars.wrapped(i32, f"((uint32_t){c} + {' + '.join(terms)})"))
    return tuple(made) if len(made) > 1 else made[0]

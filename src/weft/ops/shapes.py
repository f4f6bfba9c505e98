"""Shape arithmetic that operators share: broadcasting, axes, and row-major positions; sizes may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import prod
from typing import Final

from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Add,
    Bounds,
    Const,
    Expr,
    ExprLike,
    FloorDiv,
    Mul,
    Sub,
    Var,
    as_expr,
    assume,
    free_vars,
    is_small,
    prove,
    simplify,
)
from weft.support.dtypes import DType
from weft.support.errors import TypeMismatch
from weft.te import Tensor

MOST_BYTES: Final = 1 << 47
"""Bytes that a process can address: x86-64 and AArch64 leave a program 47 bits of an address, or 48."""

FARTHEST: Final = 1 << 31
"""Elements that a window or a border may reach: products of two of them are numbers still."""

MOST_DIMENSIONS: Final = 64
"""Dimensions of a tensor: those that NumPy's arrays have at most."""

MOST_NODES: Final = 1000
"""Nodes of the expression of a size, with shared nodes written out: comparison and printing of sizes may walk them all."""

_TOO_LARGE: Final = "make it smaller: look for a size that is damaged, or that was given too large"


@lru_cache(maxsize=1024)
def _at_least_one(sizes: frozenset[Var]) -> Bounds:
    bounds = Bounds()
    for v in sorted(sizes, key=lambda v: v.serial):
        bounds = bounds.bind(v, *v.size_range)
    return bounds


_LEAST: Final[ContextVar[Mapping[Var, int]]] = ContextVar("least sizes")


@contextmanager
def least_sizes(known: Mapping[Var, int]) -> Iterator[None]:
    """While it lasts, `size_bounds` knows that variables are at least the numbers *known*: there are tensors of such sizes."""
    token = _LEAST.set(known)
    try:
        yield
    finally:
        _LEAST.reset(token)


def size_bounds(*sizes: Expr) -> Bounds:
    """Returns the bounds of the variables in *sizes*: a symbolic size is at least one, and in its limits if it has such."""
    bounds = _at_least_one(frozenset(v for s in sizes for v in free_vars(s)))
    for v, least in _LEAST.get({}).items():
        if v in bounds.ranges:
            bounds = bounds.with_range(v, as_expr(least, INDEX), bounds.ranges[v][1])
    return bounds


def simplify_size(e: Expr) -> Expr:
    """Returns the canonical form of a size, given that the symbolic sizes in it are at least one."""
    return e if isinstance(e, Const) else simplify(e, size_bounds(e))


_POSSIBLY_EQUAL: Final[ContextVar[list[tuple[Expr, Expr, bool]] | None]] = ContextVar("possibly equal", default=None)


@contextmanager
def possibly_equal_sizes() -> Iterator[list[tuple[Expr, Expr, bool]]]:
    """While it lasts, sizes that may be equal are the same for `same_size`; tells the pairs, and whether one may be 1 instead."""
    found: list[tuple[Expr, Expr, bool]] = []
    token = _POSSIBLY_EQUAL.set(found)
    try:
        yield found
    finally:
        _POSSIBLY_EQUAL.reset(token)


def same_size(a: Expr, b: Expr, *, may_be_one: bool = False) -> bool:
    """Tells whether two sizes are the same expression, once simplified; if one *may be one*, a tensor is repeated along it."""
    if a is b:
        return True
    difference = simplify_size(a - b)
    taken = _POSSIBLY_EQUAL.get()
    if taken is None or difference is ZERO:
        return difference is ZERO
    if not size_bounds(difference).of(difference).holds(0):
        return False
    taken.append((a, b, may_be_one))
    return True


def bounds_of_existing(*sizes: Expr, least: int = 1) -> Bounds:
    """Returns the bounds of the variables in *sizes*, given that a tensor has these: they are at least *least*.

    A convolution's output of `(n + 240) // 320 - 1` rows tells that n is at least 400. Of formulas of several variables, the
    bounds are those that the simplifier finds for one.
    """
    bounds = size_bounds(*sizes)
    for s in sizes:
        part, end = s, least
        while isinstance(part, Add | Sub | Mul | FloorDiv) and isinstance(part.b, Const):
            k = int(part.b.value)
            if isinstance(part, Mul | FloorDiv) and k <= 0:
                break
            if isinstance(part, Mul):
                end = -(-end // k)
            else:
                end = end * k if isinstance(part, FloorDiv) else end + k if isinstance(part, Sub) else end - k
            part = part.a
        if not prove(part >= end, bounds):
            bounds = assume(part >= end, bounds)
    return bounds


def show_shape(shape: Iterable[Expr]) -> str:
    """Returns a shape as text, such as `(1, n, 64)`."""
    inner = ", ".join(str(e.value) if isinstance(e, Const) else getattr(e, "name", "?") for e in shape)
    return f"({inner})"


def is_tractable(size: ExprLike) -> bool:
    """Tells whether a size is one to compute with: an expression that is not too large, or an integer of 64 bits."""
    known = _number(size)
    return -(1 << 63) <= known < 1 << 63 if known is not None else is_small(as_expr(size, INDEX), MOST_NODES)


def check_rank(rank: int) -> None:
    """Raises `TypeMismatch` for more dimensions than a tensor can have."""
    if rank > MOST_DIMENSIONS:
        raise TypeMismatch(
            f"a tensor would have {rank} dimensions; {MOST_DIMENSIONS} is the most", hint="export the model again"
        )


def check_bytes(shape: Sequence[ExprLike], dtype: DType) -> None:
    """Raises `TypeMismatch` for a tensor that no process could hold, or of a negative size; symbolic sizes are at least one.

    So are too many dimensions, and sizes of too many operations.
    """
    check_rank(len(shape))
    if any(_number(s) is None and not is_tractable(s) for s in shape):
        raise TypeMismatch(
            f"a tensor would have a size that is a formula of more than {MOST_NODES} parts",
            hint="give the symbolic sizes numbers, or export the model with simpler arithmetic on its shapes",
        )
    negative = [n for n in map(_number, shape) if n is not None and n < 0]
    if negative:
        raise TypeMismatch(f"a tensor would have a dimension of size {negative[0]}")
    count = dtype.bytes * prod([max(1, n) for n in map(_number, shape) if n is not None])
    if count > MOST_BYTES:
        sizes = ", ".join(getattr(s, "name", "?") if (n := _number(s)) is None else str(n) for s in shape)
        raise TypeMismatch(
            f"a tensor ({sizes}) of {dtype} takes {count:.3g} bytes, more than a process can address", hint=_TOO_LARGE
        )


def check_distances(name: str, given: Sequence[int]) -> None:
    """Raises `TypeMismatch` for the attribute *name*, numbers of elements, if one of them is beyond any dimension in use."""
    for n in given:
        if abs(n) > FARTHEST:
            raise TypeMismatch(f"{name} are {tuple(given)}, and {n} is beyond any tensor", hint=_TOO_LARGE)


def multiplied(size: Expr, factor: int) -> Expr:
    """Returns *size* times *factor*; raises `TypeMismatch` beyond the memory of any process: the product might overflow."""
    known = _number(size)
    if known is not None and abs(known * factor) > MOST_BYTES:
        raise TypeMismatch(f"{factor} times the size {known} is more than a process can address", hint=_TOO_LARGE)
    return size * factor


def _number(size: ExprLike) -> int | None:
    """Returns a size as a number; None for a symbolic one."""
    return (int(size.value) if isinstance(size, Const) else None) if isinstance(size, Expr) else int(size)


def broadcast_shapes(*shapes: Sequence[Expr]) -> tuple[Expr, ...]:
    """Returns the shape that *shapes* broadcast to, by NumPy's rule; raises `TypeMismatch` where they don't."""
    rank = max(len(s) for s in shapes)
    result: list[Expr] = []
    for d in range(rank):
        sizes = [s[d - rank + len(s)] for s in shapes if d - rank + len(s) >= 0]
        wide = [s for s in sizes if s is not ONE]
        if any(not same_size(wide[0], s, may_be_one=True) for s in wide[1:]):
            raise TypeMismatch(f"the shapes {' and '.join(show_shape(s) for s in shapes)} do not broadcast together")
        result.append(wide[0] if wide else ONE)
    return tuple(result)


def broadcast_index(shape: Sequence[Expr], index: Sequence[Expr], result: Sequence[Expr]) -> tuple[Expr, ...]:
    """Returns where *index* of a broadcast *result* (its shape) reads a tensor of *shape*."""
    skipped = len(index) - len(shape)
    own = zip(shape, index[skipped:], result[skipped:], strict=True)
    return tuple([ZERO if s is ONE and r is not ONE else i for s, i, r in own])


def at_broadcast(x: Tensor, index: Sequence[Expr], result: Sequence[Expr]) -> Expr:
    """Reads *x* at *index* of a result, of shape *result*, that it is broadcast to."""
    return x[broadcast_index(x.shape, index, result)]


def check_shape(what: str, found: Sequence[Expr], wanted: Sequence[ExprLike]) -> None:
    """Raises `TypeMismatch` unless the shapes are the same; *what* names the tensor."""
    sizes = sized(*wanted)
    if len(found) != len(sizes) or not all(map(same_size, found, sizes)):
        raise TypeMismatch(f"{what} has the shape {show_shape(found)}, not {show_shape(sizes)}")


def check_broadcasts(what: str, found: Sequence[Expr], result: Sequence[Expr]) -> None:
    """Raises `TypeMismatch` unless a tensor of shape *found* can be repeated to fill *result*."""
    fits = len(found) <= len(result)
    if not fits or not all(
        f is ONE or same_size(f, r) for f, r in zip(reversed(found), reversed(result), strict=False)
    ):
        raise TypeMismatch(f"{what}, of shape {show_shape(found)}, does not broadcast to {show_shape(result)}")


def normalize_axis(axis: int, rank: int) -> int:
    """Returns *axis* counted from the front; raises `TypeMismatch` for one that a tensor of *rank* lacks."""
    if not -rank <= axis < rank:
        raise TypeMismatch(f"axis {axis} is out of range for a tensor of {rank} dimensions")
    return axis % rank if rank else 0


def normalize_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Returns *axes* counted from the front, sorted; None stands for all of them."""
    return tuple(range(rank)) if axes is None else tuple(sorted({normalize_axis(a, rank) for a in axes}))


def product(sizes: Iterable[ExprLike]) -> Expr:
    """Returns the product of *sizes*; one for none."""
    result: Expr = ONE
    for s in sizes:
        result = result * as_expr(s, INDEX)
    return simplify_size(result)


def flatten_index(index: Sequence[Expr], shape: Sequence[Expr]) -> Expr:
    """Returns the row-major position of *index* in *shape*."""
    position: Expr = ZERO
    for i, s in zip(index, shape, strict=True):
        position = position * s + i
    return position


def unflatten_index(position: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Returns the index of the row-major *position* in *shape*."""
    found: list[Expr] = []
    for d in reversed(range(len(shape))):
        found.append(position if d == 0 else position % shape[d])
        position = position // shape[d]
    return tuple([ZERO if s is ONE else i for i, s in zip(reversed(found), shape, strict=True)])


def sized(*sizes: ExprLike) -> tuple[Expr, ...]:
    """Returns *sizes* as index expressions, simplified."""
    return tuple([simplify_size(as_expr(s, INDEX)) for s in sizes])

"""Recognises sums of products, whose inputs may be padded with zeros."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TypeGuard

from weft.ir import (
    Add,
    BitAnd,
    Cast,
    Const,
    Expr,
    Max,
    Min,
    Mul,
    Neg,
    Reinterpret,
    Select,
    Sub,
    Var,
    free_vars,
    post_order,
)
from weft.loop import AxisKind, Block, Load, Store
from weft.schedule.cursors.state import called, refuse
from weft.schedule.cursors.tree import plain_store

Sizes = Mapping[Var, Expr]
"""The extents of the axes that are padded, rounded up."""


def is_padded(e: Expr, sizes: Sizes) -> bool:
    """Tells whether an index uses an axis that is padded."""
    return any(v in sizes for v in free_vars(e))


def chooses_zero(e: Expr) -> TypeGuard[Select]:
    """Tells whether *e* is a value where some condition holds, and zero elsewhere."""
    return isinstance(e, Select) and isinstance(e.other, Const) and not e.other.value


def accesses(block: Block) -> list[Load | Store]:
    """Returns the accesses of *block*, reads and writes."""
    parts = [block.body] if block.init is None else [block.init, block.body]
    return [n for p in parts for n in post_order(p) if isinstance(n, Load | Store)]


def check_einsum(block: Block, sizes: Sizes) -> None:
    """Refuses a block whose result padding would change, or whose formula may trap on padding (an integer division by zero)."""
    written = plain_store(block)
    _check_result(block, written)
    _check_start(block, written)
    values = [s.value for s in accesses(block) if isinstance(s, Store)]
    for value in values:
        for n in _formula(value):
            if not isinstance(n, Load | Const | Var | Add | Sub | Mul | Neg | Min | Max | Cast | Reinterpret | BitAnd):
                refuse(
                    f"{block.name} is not made of sums and products of elements: it has `{n}`",
                    block,
                    "compute the operands in a block of their own, and pad the sum of products",
                )
    own = Load(written.buffer, written.indices)
    for a in block.axes:
        if a.kind is not AxisKind.SPATIAL and a.var in sizes and not _adds_zero(written.value, own, a.var):
            refuse(
                f"{block.name} does not add zero where its axis {called(a.var)} is padded",
                block,
                "leave the axis as it is, or pad a sum of products of which every factor depends on the axis",
            )


def _check_result(block: Block, written: Store) -> None:
    """Refuses a block that does not write each element of its result once, at plain axes."""
    extents = {a.var: a.extent for a in block.axes if a.kind is AxisKind.SPATIAL}
    at = [i for i in written.indices if isinstance(i, Var)]
    whole = len(set(at)) == len(written.indices) and [extents.get(v) for v in at] == list(written.buffer.shape)
    if not whole or set(at) != set(extents):
        refuse(
            f"{block.name} does not write each element of {written.buffer.name} once, at its plain axes",
            block,
            "pad a block that computes all of its result, in the result's own layout",
        )


def _check_start(block: Block, written: Store) -> None:
    """Refuses a block that depends on the previous contents of its result."""
    reduces = any(a.kind is not AxisKind.SPATIAL for a in block.axes)
    same = all(n.indices == written.indices for n in accesses(block) if n.buffer is written.buffer)
    reads = any(isinstance(n, Load) and n.buffer is written.buffer for n in accesses(block))
    starts = isinstance(block.init, Store) and not any(n.buffer is written.buffer for n in _loads(block.init.value))
    if not same or (reads or reduces) != starts:
        refuse(
            f"{block.name} uses what was in {written.buffer.name} before", block, "pad before decomposing its reduction"
        )


def _loads(e: Expr) -> list[Load]:
    return [n for n in post_order(e) if isinstance(n, Load)]


def _formula(e: Expr) -> list[Expr]:
    """Returns the nodes of *e* outside of the indices of accesses."""
    found: list[Expr] = []
    stack = [e]
    while stack:
        n = stack.pop()
        found.append(n)
        if not isinstance(n, Load):
            stack += [k for k in n.children() if isinstance(k, Expr)]
    return found


def _adds_zero(value: Expr, own: Expr, axis: Var) -> bool:
    """Tells whether an update leaves its result unchanged wherever all elements indexed by *axis* are zero."""
    if not isinstance(value, Add) or own not in (value.a, value.b):
        return False
    return _is_zero(value.b if value.a is own else value.a, axis)


def _is_zero(e: Expr, axis: Var) -> bool:
    """Tells whether *e* is zero where all elements indexed by *axis* are zero; infinity times zero is not."""
    match e:
        case Load(_, indices):
            return any(i is axis for i in indices)
        case Add(a, b) | Sub(a, b) | Min(a, b) | Max(a, b):
            return _is_zero(a, axis) and _is_zero(b, axis)
        case Mul(a, b):
            return any(_is_zero(x, axis) and (_is_zero(y, axis) or _is_finite(y)) for x, y in ((a, b), (b, a)))
        case Cast(a) | Neg(a):
            return _is_zero(a, axis)
        case Reinterpret(a):  # bits that are all zero are zero in any type; those of -0.0 are not
            return not a.dtype.is_float and _is_zero(a, axis)
        case BitAnd(a, b):
            return _is_zero(a, axis) or _is_zero(b, axis)
    return False


def _is_finite(e: Expr) -> bool:
    return not e.dtype.is_float or (isinstance(e, Const) and isfinite(e.value))

"""Selection and logic whose operands may fault, or are rarely needed: they are evaluated only where their condition holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import copysign

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.emitter import Emitter, emits, is_unlikely
from weft.codegen.llvm.core.ir_types import is_false, is_true, register_type, splat
from weft.codegen.llvm.memory.loads import is_zero_where_masked
from weft.ir import INDEX, And, Binary, Broadcast, Const, Expr, Or, Select
from weft.loop import Load
from weft.support.dtypes import bool_


@emits(Select, lazy=True)
def select(f: Emitter, e: Select, *operands: Operand) -> Operand:
    """Emits a selection: as one instruction, by masked loads, or by a branch, depending on which operands may fault."""
    cond = f.text(e.cond)
    if is_true(cond) or is_false(cond):
        return f.value(e.then if is_true(cond) else e.other)
    if is_unlikely(e.cond):
        return skipped(f, e, cond)
    if not (f.may_trap(e.then) or f.may_trap(e.other)):
        x, y = f.text(e.then), f.text(e.other)
    elif e.cond.dtype.lanes == 1:
        return branch(f, cond, e.then, e.other)
    elif isinstance(e.then, Load) and is_zero(e.other) and not f.knows(e.then) and is_zero_where_masked(f, e.then):
        return masked(f, e.then, cond)
    else:
        x, y = masked(f, e.then, cond), masked(f, e.other, negated(f, e.cond, cond))
    kind = register_type(e.dtype)
    made = f.build.pure(f"select {register_type(e.cond.dtype)} {cond}, {kind} {x}, {kind} {y}", cond, x, y)
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


@emits(And, Or, lazy=True)
def logic(f: Emitter, e: Binary, *operands: Operand) -> Operand:
    """Emits `and` or `or`; the second operand is evaluated only where the first does not decide, if it may fault."""
    stop = "false" if isinstance(e, And) else "true"
    decides = is_false if isinstance(e, And) else is_true
    a = f.text(e.a)
    if is_true(a) or is_false(a):
        return a if decides(a) else f.value(e.b)
    if not f.may_trap(e.b):
        b = f.text(e.b)
    elif e.dtype.lanes == 1:
        return branch_logic(f, e, a, stop)
    else:
        b = masked(f, e.b, a if isinstance(e, And) else negated(f, e.a, a))
    if is_true(b) or is_false(b):
        return b if decides(b) else a
    kind = register_type(e.dtype)
    decided = splat(stop, e.dtype)
    then, other = (b, decided) if isinstance(e, And) else (decided, b)
    return f.build.pure(f"select {kind} {a}, {kind} {then}, {kind} {other}", a, b)


def negated(f: Emitter, e: Expr, x: str) -> str:
    """Returns the complement of the bool *x* of the type of *e*."""
    return f.build.pure(f"xor {register_type(e.dtype)} {x}, {splat('true', e.dtype)}", x)


def is_zero(e: Expr) -> bool:
    """Tells whether all bits of *e* are zero."""
    value = e.value if isinstance(e, Broadcast) else e
    return isinstance(value, Const) and value.value == 0 and copysign(1, value.value) > 0


def masked(f: Emitter, e: Expr, mask: str) -> str:
    """Returns the value of *e*, loading only in the lanes where *mask* (and the mask in force) holds."""
    if not f.may_trap(e):
        return f.text(e)
    outer = f.mask
    if outer is not None:
        flags = register_type(bool_.with_lanes(e.dtype.lanes))
        mask = f.build.pure(f"and {flags} {outer}, {mask}", outer, mask)
    f.mask, f.mask_lanes = mask, e.dtype.lanes
    with f.scope():
        made = f.text(e)
    f.mask = outer
    return made


def branch(f: Emitter, cond: str, then: Expr, other: Expr) -> Operand:
    """Emits a selection by a scalar condition as two paths of control."""
    with diamond(f, cond) as merged:
        first = arm(f, then, merged)
        second = arm(f, other, merged)
    kind = register_type(then.dtype)
    made = f.build.here(f"phi {kind} [ {first[0]}, %{first[1]} ], [ {second[0]}, %{second[1]} ]")
    return Affine(0, {made: 1}) if then.dtype is INDEX else made


def branch_logic(f: Emitter, e: Binary, a: str, stop: str) -> Operand:
    """Emits a scalar `and` or `or` whose first operand is *a*, and whose second may fault."""
    rest, merged = f.build.label("rest"), f.build.label("decided")
    before = f.build.block
    targets = (rest, merged) if isinstance(e, And) else (merged, rest)
    before.end = f"br i1 {a}, label %{targets[0]}, label %{targets[1]}"
    with f.build.region(rest):
        with f.scope():
            b = f.text(e.b)
        last = f.build.block
        last.end = f"br label %{merged}"
    f.build.start(merged)
    return f.build.here(f"phi i1 [ {stop}, %{before.label} ], [ {b}, %{last.label} ]")


def skipped(f: Emitter, e: Select, cond: str) -> Operand:
    """Emits a selection whose first operand is computed, for all lanes, only if some lane chooses it."""
    other, kind, flags = f.text(e.other), register_type(e.dtype), register_type(e.cond.dtype)
    before = f.build.block
    seldom, end = branch_if_any(f, cond, e.cond.dtype.lanes, "seldom", "join")
    with f.build.region(seldom), f.confined():
        then = masked(f, e.then, cond) if e.cond.dtype.lanes > 1 else f.text(e.then)
        chosen = f.build.here(f"select {flags} {cond}, {kind} {then}, {kind} {other}")
        last = f.build.block
        last.end = f"br label %{end}"
    f.build.start(end)
    made = f.build.here(f"phi {kind} [ {other}, %{before.label} ], [ {chosen}, %{last.label} ]")
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


def branch_if_any(f: Emitter, cond: str, lanes: int, seldom: str, end: str) -> tuple[str, str]:
    """Ends the block by a branch that is taken where *cond* holds in any lane, which is unlikely.

    Returns the labels, made from the names *seldom* and *end*, of the block where it is taken and of the one behind that.
    """
    bits = f"i{lanes}"
    together = cond if lanes == 1 else f.build.here(f"bitcast <{lanes} x i1> {cond} to {bits}")
    none = f.build.here(f"icmp eq {bits} {together}, 0")
    labels = f.build.label(seldom), f.build.label(end)
    f.build.block.end = f"br i1 {none}, label %{labels[1]}, label %{labels[0]}, !prof !1"
    return labels


class Diamond:
    """The labels of a branch with two arms."""

    def __init__(self, f: Emitter) -> None:
        self.arms = [f.build.label("then"), f.build.label("else")]
        self.end = f.build.label("join")


@contextmanager
def diamond(f: Emitter, cond: str) -> Iterator[Diamond]:
    """Branches on *cond*; the two arms are emitted in the body with `arm`, and the join begins after it."""
    labels = Diamond(f)
    f.build.block.end = f"br i1 {cond}, label %{labels.arms[0]}, label %{labels.arms[1]}"
    yield labels
    f.build.start(labels.end)


def arm(f: Emitter, e: Expr, labels: Diamond) -> tuple[str, str]:
    """Emits one arm of a diamond; returns its value and the label of its last block."""
    with f.build.region(labels.arms.pop(0)):
        with f.scope():
            made = f.text(e)
        f.build.block.end = f"br label %{labels.end}"
        return made, f.build.block.label

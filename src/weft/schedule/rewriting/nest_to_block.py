"""Putting a nest of loops into a block: each axis is divided into steps, counted outside, and a position within the step.

An axis bound to `j0*16 + j1`, with j1 inside, becomes an outer axis bound to `j0` and stays, inside, bound to `outer*16 + j1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from weft.ir import ONE, TRUE, ZERO, Bounds, Expr, Var, ceil_div, conjuncts, extremes, free_vars, simplify, substitute
from weft.loop import Axis, AxisKind, Block, For, Function, Stmt, for_, make_block
from weft.schedule.cursors.loop_nest import fresh_block_name
from weft.schedule.cursors.state import LoopRef, refuse
from weft.schedule.cursors.tree import bounds_on, loop_path, replace, the_loop


@dataclass(frozen=True, slots=True)
class Divided:
    """An axis of the inner block, with the axis that counts its steps, if there is one, and the bindings of both."""

    inner: Axis
    position: Expr  # in terms of the outer axis and the loops inside
    outer: Axis | None
    step: Expr  # the binding of the outer axis


def enclose(fn: Function, loop: LoopRef) -> tuple[Function, Block]:
    """Returns the function with *loop* as the body of a new block, and that block."""
    path = loop_path(fn, loop)
    nest, block = only_block(the_loop(path))
    whole = (*path, *nest[1:], block)
    bounds = bounds_on(whole, fn)
    _check(nest, block)
    axes = [_divided(a, b, block, nest, bounds) for a, b in zip(block.axes, block.bindings, strict=True)]
    init = None if block.init is None else _init(fn, block, nest, axes, block.init)
    inner = make_block(block.name, block.axes, [x.position for x in axes], block.body, None, TRUE, block.notes)
    counted = [(x.outer, x.step) for x in axes if x.outer is not None]
    name = fresh_block_name(fn, f"{block.name}_o")
    body = replace((*nest, block), inner)
    outer = make_block(name, [a for a, _ in counted], [b for _, b in counted], body, init, block.predicate)
    return fn.with_body(replace(path, outer)), outer


def only_block(loop: For) -> tuple[list[For], Block]:
    """Returns the loops from *loop* inwards and the one block in them; refuses a loop that contains more."""
    nest = [loop]
    while isinstance(nest[-1].body, For):
        nest.append(nest[-1].body)
    block = nest[-1].body
    if not isinstance(block, Block):
        refuse(
            f"there is more than one block in the loop {nest[-1].var.name}",
            nest[-1],
            "move the other blocks out of the loop first",
        )
    return nest, block


def _check(nest: Sequence[For], block: Block) -> None:
    """Refuses loops whose range varies, and a guard that depends on the loops inside."""
    inside = {f.var for f in nest}
    for f in nest:
        if f.begin is not ZERO or any(v in inside for v in free_vars(f.extent)):
            refuse(
                f"the range of {f.var.name} does not begin at 0, or depends on another loop inside",
                f,
                "split by factors that divide, or partition, for a plain range",
            )
    for c in conjuncts(block.predicate):
        guarded = next((v for v in free_vars(c) if v in inside), None)
        if guarded is not None:
            refuse(
                f"the guard of {block.name} depends on {guarded.name}, which is inside",
                block,
                "split by a factor that divides the extent",
            )


def _divided(axis: Axis, binding: Expr, block: Block, nest: Sequence[For], bounds: Bounds) -> Divided:
    """Divides one axis; refuses a binding that is not a number of steps plus a position."""
    inside = [f.var for f in nest]
    counter = Axis(Var(f"{axis.var.name}_o"), axis.extent, axis.kind)
    if not any(v in inside for v in free_vars(binding)):
        return Divided(axis, counter.var, counter, binding)
    found = extremes(binding, inside, bounds)
    if found is None:
        _refuse_division(axis, binding, block)
    low, high = found
    position = simplify(binding - low, bounds)
    width = simplify(high - low + ONE, bounds)
    step = simplify(low // width, bounds)
    known = [*inside, *free_vars(axis.extent)]
    if simplify(step * width - low, bounds) is not ZERO or any(v not in known for v in free_vars(position)):
        _refuse_division(axis, binding, block)
    if any(v not in free_vars(axis.extent) for v in free_vars(width)):
        _refuse_division(axis, binding, block)
    if low is ZERO:
        return Divided(axis, position, None, ZERO)
    counter = Axis(counter.var, simplify(ceil_div(axis.extent, width)), axis.kind)
    return Divided(axis, counter.var * width + position, counter, step)


def _refuse_division(axis: Axis, binding: Expr, block: Block) -> NoReturn:
    refuse(
        f"the axis {axis.var.name} of {block.name}, bound to {binding}, is not a whole number of steps of the loops outside"
        " plus a position within the step",
        block,
        "split the loops of the axis where the block is to be cut",
    )


def _init(fn: Function, block: Block, nest: Sequence[For], axes: Sequence[Divided], init: Stmt) -> Stmt:
    """Returns the initialisation of the reduction for all results of the loops inside."""
    inside = {f.var for f in nest}
    spatial = [x for x in axes if x.inner.kind is AxisKind.SPATIAL]
    moving = {v for x in spatial for v in free_vars(x.position) if v in inside}
    for x in axes:
        used = free_vars(x.position)
        mixed = x not in spatial and moving.intersection(used)
        if mixed or simplify(substitute(x.position, dict.fromkeys(used, ZERO))) is not ZERO:
            refuse(
                f"{block.name} does not start in the first iteration of loops of its own",
                block,
                "decompose_reduction first",
            )
    fresh = {f.var: Var(f"{f.var.name}_init") for f in nest if f.var in moving}
    variables = {x.inner.var: Var(x.inner.var.name) for x in spatial}
    made: Stmt = make_block(
        fresh_block_name(fn, f"{block.name}_init"),
        [Axis(variables[x.inner.var], x.inner.extent, x.inner.kind) for x in spatial],
        [substitute(x.position, fresh) for x in spatial],
        substitute(init, variables),
    )
    for f in reversed(nest):
        if f.var in fresh:
            made = for_(fresh[f.var], f.extent, made)
    return made

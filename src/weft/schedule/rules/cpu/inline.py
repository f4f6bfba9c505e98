"""Inlining, before all other rules: formulas that are read about as often as they are written become part of their readers."""

from __future__ import annotations

from math import prod
from typing import TypeGuard

from weft.cost import (
    MOST_REPEATED,
    Candidates,
    Inline,
    Planner,
    elements,
    inline_plans,
    packed_factor_plans,
    rearrangement_plans,
    size_of,
    turned_rows_plans,
)
from weft.ir import Cast, Const, Expr, FloorDiv, FloorMod, Mul, Select, free_vars, is_small, post_order, reads_memory
from weft.loop import Block, Buffer, Load, Store
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.legality.placement import readers
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import (
    block_of,
    computed_with,
    contraction_of,
    inputs_of,
    is_reduction,
    reads_along,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.cpu.transpose import turns_rows
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def inline_blocks(s: Schedule, p: Planner) -> None:
    """Inlines every block that costs nothing to recompute at its reads.

    A block of several readers has one where these have become a part of one another: x * sigmoid(x) reads x at one place.
    """
    asked: set[str] = set()
    while _inline_more(s, p, asked):
        pass


def _inline_more(s: Schedule, p: Planner, asked: set[str]) -> bool:
    """Inlines what can be now, beside the blocks that were *asked* about before; tells whether there was any."""
    before = len(asked)
    for ref in s.blocks():
        block = block_of(s, ref)
        if ref.name in asked or not _is_candidate(s, block):
            continue
        users = readers(s.function, block)
        if p.is_grid and _is_fetched(block, users):
            continue
        if _repeats_no_work(block, users) and (before == 0 or _stays_small(block, users)):
            asked.add(ref.name)
            if p.decide(ref.name, Inline, _plans(block, users, p)).inline:
                try_inline(s, ref)
    return len(asked) > before


def _stays_small(block: Block, users: list[Block]) -> bool:
    """Tells whether formulas stay small that read *block* several times over: each inlining may double those before it."""
    return all(isinstance(b.body, Store) and is_small(b.body.value, MOST_REPEATED) for b in (block, *users))


def _is_candidate(s: Schedule, block: Block) -> bool:
    intermediate = all(alloc_of(s.function.body, r.buffer) is not None for r in block.writes)
    return intermediate and not is_reduction(block) and isinstance(block.body, Store)


def _repeats_no_work(block: Block, users: list[Block]) -> bool:
    """Tells whether inlining *block* into its users repeats no significant work.

    A mere rearrangement is inlined, and so is a gather that is read at one place: at each further place its indices would be
    loaded again. A computed value must have one user, which reads each element once. The padding of a reduction's input is not
    inlined, so that the reduction's inner loop has no conditions.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    if value is None or not users:
        return False
    reads_once = all(_reads_once(u, block.writes[0].buffer) for u in users)
    if isinstance(value, Const):
        return True
    if isinstance(value, Load) and (reads_once or not any(map(reads_memory, value.indices))):
        return True
    if len(users) != 1 or not reads_once or elements(users[0].axes) > elements(block.axes):
        return False
    return not is_reduction(users[0]) or _is_sum_of_values(users[0], value)


def _is_fetched(block: Block, users: list[Block]) -> bool:
    """Tells whether *block* is a factor whose elements are found by division: threads compute parts of it as they fetch them.

    Read through such indices, the factor would have no rows or columns to tile.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    value = value.a if isinstance(value, Cast) else value
    divides = isinstance(value, Load) and any(
        isinstance(n, FloorDiv | FloorMod) for i in value.indices for n in post_order(i)
    )
    return divides and any(contraction_of(u) is not None for u in users)


def _is_sum_of_values(user: Block, value: Expr) -> bool:
    """Tells whether a reduction may compute the *value* that it combines: it is no contraction, whose factors are loads, and
    *value* is not chosen by where it is, as a padding is.
    """
    multiplies = any(isinstance(n, Mul) for n in post_order(user.body))
    return not multiplies and not any(isinstance(n, Select) and computed_with(n.cond) for n in post_order(value))


def _reads_once(user: Block, made: Buffer) -> bool:
    """Tells whether *user* reads *made* at one place only, however often it uses that element."""
    return sum(x.buffer is made for x in inputs_of(user)) == 1


def _plans(block: Block, users: list[Block], p: Planner) -> Candidates[Inline]:
    """Returns the choices for a block that may be inlined: a transposition before a padding or to rows, or a left factor that
    is packed or transposed for a contraction, may be faster by itself.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    if _makes_rows(block, users, p):
        reads = len(users)
        return lambda _: turned_rows_plans(elements(block.axes), reads)
    last = block.axes[-1] if block.axes else None
    if not _has_indices(value) or last is None or reads_along(value, last.var):
        return lambda _: inline_plans(elements(block.axes))
    size, shape = value.buffer.dtype.bytes, value.buffer.shape
    width, nbytes = size_of(last.extent), elements(block.axes) * size
    if any(map(_pads, users)):
        moving = [d for d, i in enumerate(value.indices) if last.var in free_vars(i)]
        strides = [prod(map(size_of, shape[d + 1 :])) * size for d in moving]
        return lambda machine: rearrangement_plans(width, nbytes, size, strides, machine)
    columns = 0 if p.is_grid else _columns(block, users)
    if columns == 0:
        return lambda _: inline_plans(elements(block.axes))
    return lambda machine: packed_factor_plans(nbytes, size, columns, machine)


def _columns(block: Block, users: list[Block]) -> int:
    """Returns for how many columns each element of *block* is used in a contraction, as the left factor; 0 for other users."""
    found = contraction_of(users[0])
    if len(users) != 1 or found is None or found.left.buffer is not block.writes[0].buffer:
        return 0
    return elements([a for a in spatial_axes(users[0]) if not uses_axis(found.left, a.var)])


def _makes_rows(block: Block, users: list[Block], p: Planner) -> bool:
    """Tells whether *block* turns columns into rows for reductions, whose loops would read its input element by element.

    A reduction alone may as well go along the columns, unless it combines them with what lies in rows.
    """
    if not any(map(is_reduction, users)) or not turns_rows(block, p.lanes(block.writes[0].buffer.dtype.bits)):
        return False
    return not all(map(is_reduction, users)) or len(inputs_of(block)) > 1


def _has_indices(value: Expr | None) -> TypeGuard[Load]:
    """Tells whether *value* is an element of a tensor, and not of a number, which is the same all over."""
    return isinstance(value, Load) and bool(value.indices)


def _pads(block: Block) -> bool:
    """Tells whether *block* is a padding: it copies the elements inside of some bounds."""
    return isinstance(block.body, Store) and isinstance(block.body.value, Select)


def try_inline(s: Schedule, ref: BlockRef) -> None:
    """Inlines the block *ref*, if that is legal."""
    try:
        with proving():
            s.compute_inline(ref)
    except ScheduleError:  # not of the form that can be inlined; it stays a block of its own
        return

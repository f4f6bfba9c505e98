"""Queries of rules about a block: its axes, how its loads use them, and the kind of its computation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from weft.cost import elements, size_of
from weft.ir import (
    ONE,
    ZERO,
    Add,
    BitAnd,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Mul,
    Node,
    Reinterpret,
    Select,
    Var,
    free_vars,
    linear_terms,
    post_order,
    simplify,
)
from weft.loop import Axis, AxisKind, Block, Load, Store, loads
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, the_block
from weft.schedule.schedule import Schedule


def computed_with(e: Expr) -> set[Var]:
    """Returns the variables that *e* computes with: those outside of its loads."""
    found: set[Var] = set()
    seen: set[Node] = set()  # formulas share operands: as a tree, one may have exponentially many
    stack: list[Node] = [e]
    while stack:
        n = stack.pop()
        if n in seen or isinstance(n, Load):
            continue
        seen.add(n)
        if isinstance(n, Var):
            found.add(n)
        stack += n.children()
    return found


def block_of(s: Schedule, ref: BlockRef) -> Block:
    """Returns the block that *ref* names, as it is now."""
    return the_block(block_path(s.function, ref))


def spatial_axes(block: Block) -> list[Axis]:
    """Returns the axes along which instances write different elements."""
    return [a for a in block.axes if a.kind is AxisKind.SPATIAL]


def reduce_axes(block: Block) -> list[Axis]:
    """Returns the axes along which instances are combined."""
    return [a for a in block.axes if a.kind is AxisKind.REDUCE]


def is_reduction(block: Block) -> bool:
    """Tells whether *block* is a reduction."""
    return bool(reduce_axes(block))


def inputs_of(block: Block) -> list[Load]:
    """Returns the loads of *block*, without those of the buffers that it writes."""
    written = {r.buffer for r in block.writes}
    return [x for x in loads(block.body) if x.buffer not in written]


def merged_axes(index: Expr, block: Block) -> list[Var]:
    """Returns the axes of *block* whose elements *index* numbers in row-major order, outermost first; none for another index."""
    extents = {a.var: a.extent for a in block.axes}
    found = linear_terms(index, extents)
    if found is None or found[1] is not ZERO:
        return []
    merged: list[Var] = []
    terms = dict(found[0])
    stride: Expr = ONE
    while terms:
        inner = next((v for v, n in terms.items() if n is stride), None)
        if inner is None:
            return []
        del terms[inner]
        merged.insert(0, inner)
        stride = simplify(stride * extents[inner])
    return merged


@dataclass(frozen=True)
class Contraction:
    """A sum of products: the loads of its two factors, with the one read along the last written axis as *right*.

    Each element of the right factor takes *conversions* operations after its load. In a dot product of narrow elements,
    *group* is the innermost reduction axis, over neighbouring terms: in each group, the right factor's columns stand one after
    another, each with its terms side by side, as the instructions take them.
    """

    left: Load
    right: Load
    conversions: int = 0
    group: Axis | None = None


def contraction_of(block: Block) -> Contraction | None:
    """Returns the factors of a block that is a sum of products of two loads; None for any other.

    In a reduction that was split with a remainder, the added product may be under a condition. The factors of a dot product are
    converted to the type of the sum.
    """
    body, product = block.body, _product(block)
    if product is None or not isinstance(body, Store):
        return None
    last = body.indices[-1] if body.indices else ONE
    if not isinstance(product.a, Load) or not isinstance(product.b, Load):
        return _dot_product(block, product, last) or _of_expressions(block, product, last)
    if isinstance(last, Var) and reads_along(product.a, last) and not reads_along(product.b, last):
        return Contraction(product.b, product.a)
    return Contraction(product.a, product.b)


def _product(block: Block) -> Mul | None:
    """Returns the product that a block adds up; None for any other block."""
    body = block.body
    if not is_reduction(block) or not isinstance(body, Store):
        return None
    value = body.value.then if isinstance(body.value, Select) else body.value
    if not isinstance(value, Add) or (isinstance(body.value, Select) and body.value.other is not value.a):
        return None
    return value.b if isinstance(value.b, Mul) else None


def _dot_product(block: Block, product: Mul, last: Expr) -> Contraction | None:
    """Returns the factors of a dot product in groups of neighbouring terms, that with the columns in groups as *right*."""
    loads = [x for x in map(_narrow_load, (product.a, product.b)) if x is not None]
    terms = reduce_axes(block)[-1]
    if len(loads) < 2 or not isinstance(terms.extent, Const) or not all(reads_along(x, terms.var) for x in loads):
        return None
    for right, left in (loads, loads[::-1]):
        in_columns = _numbers_columns(right, last) and right.indices[-1] is terms.var
        if (
            in_columns
            and right.buffer.shape[-1] is terms.extent
            and isinstance(last, Var)
            and not uses_axis(left, last)
        ):
            return Contraction(left, right, group=terms)
    return None


def _numbers_columns(right: Load, last: Expr) -> bool:
    """Tells whether *last* numbers the columns of a panel of *right*, or those of some panels, one after another."""
    column = right.indices[-2] if len(right.indices) > 1 else None
    in_panel = isinstance(column, FloorMod) and column.a is last and column.b is right.buffer.shape[-2]
    return column is last or in_panel


def _narrow_load(factor: Expr) -> Load | None:
    """Returns the load of a factor that is converted, or whose bits are reinterpreted; None for another factor."""
    e = factor.a if isinstance(factor, Cast | Reinterpret) else factor
    e = e.a if isinstance(factor, Reinterpret) and isinstance(e, BitAnd) else e
    return e if isinstance(e, Load) and e is not factor else None


def _of_expressions(block: Block, product: Mul, last: Expr) -> Contraction | None:
    """Returns the factors of which either is an expression of one element: converted, or a weight taken out of its bits.

    Scales and zero points may be read beside the weight, at some of its indices; *right* is the weight, which all of the
    reduction reads.
    """
    if not isinstance(last, Var):
        return None
    for left, right in ((product.a, product.b), (product.b, product.a)):
        rows, columns = loads(left), loads(right)
        if len(rows) != 1 or not columns or uses_axis(rows[0], last):
            continue
        weight = max(columns, key=lambda x: sum(uses_axis(x, a.var) for a in reduce_axes(block)))
        if reads_along(weight, last) and all(ignores_or_follows(x, last) for x in columns):
            return Contraction(rows[0], weight, _operations_on(weight, right))
    return None


def _operations_on(load: Load, e: Expr) -> int:
    """Returns how many operations of *e* depend on *load*."""
    made: set[object] = {load}
    for n in post_order(e):
        if not isinstance(n, Load) and any(k in made for k in n.children()):
            made.add(n)
    return len(made) - 1


def uses_axis(load: Load | Store, var: Var) -> bool:
    """Tells whether any index of *load* depends on *var*."""
    return any(v is var for i in load.indices for v in free_vars(i))


def reads_along(load: Load | Store, var: Var) -> bool:
    """Tells whether consecutive values of *var* read consecutive elements: it moves the last index alone, by one."""
    if any(v is var for i in load.indices[:-1] for v in free_vars(i)):
        return False
    found = linear_terms(load.indices[-1], [var])
    return found is not None and found[0].get(var) is ONE


def loops_of(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], kind: AxisKind) -> list[LoopRef]:
    """Returns those of *loops* that axes of *kind* are bound to."""
    return loops_over(s, ref, loops, [a for a in block_of(s, ref).axes if a.kind is kind])


def loops_over(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], axes: Collection[Axis]) -> list[LoopRef]:
    """Returns those of *loops* that *axes* of a block are bound to."""
    block = block_of(s, ref)
    bound = {v for a, b in zip(block.axes, block.bindings, strict=True) if a in axes for v in free_vars(b)}
    return [f for f in loops if f.var in bound]


def ignores_or_follows(load: Load | Store, var: Var) -> bool:
    """Tells whether *load* can be vectorised along *var* without gathering."""
    return not uses_axis(load, var) or reads_along(load, var)


def is_tileable(s: Schedule, ref: BlockRef) -> bool:
    """Tells whether a reduction can compute a vector of results at once: its last axis makes no input a gather."""
    block = block_of(s, ref)
    axes = spatial_axes(block)
    return (
        bool(axes)
        and elements(reduce_axes(block)) > 1
        and len({r.buffer for r in block.writes}) == 1
        and size_of(axes[-1].extent) > 1
        and any(uses_axis(x, axes[-1].var) for x in inputs_of(block))
        and all(ignores_or_follows(x, axes[-1].var) for x in inputs_of(block))
    )


def split_index(i: Expr) -> tuple[Var, int] | None:
    """Recognises `v // c` and `v % c`, returning v and c."""
    if isinstance(i, FloorDiv | FloorMod) and isinstance(i.a, Var) and isinstance(i.b, Const):
        return i.a, int(i.b.value)
    return None

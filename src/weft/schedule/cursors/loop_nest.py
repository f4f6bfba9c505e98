"""Building the loop nests that placement primitives make: a block's loops over a box of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.ir import ONE, ZERO, Bounds, Expr, Var, simplify
from weft.loop import (
    Alloc,
    Axis,
    AxisKind,
    Block,
    Buffer,
    For,
    Function,
    Let,
    Load,
    Range,
    Seq,
    Stmt,
    View,
    for_,
    make_block,
    seq,
    store,
)
from weft.schedule.cursors.rebind import conjunction, with_bindings
from weft.schedule.cursors.tree import Path, blocks_in
from weft.support.unique_names import UniqueNames


def nest_over(
    block: Block, ranges: Mapping[Var, Range], bounds: Bounds, ends: Mapping[Var, Expr] | None = None
) -> Stmt:
    """Returns fresh loops around *block*, over *ranges* of its axes (by variable) and over all of the other axes.

    The block gets a guard where a range may leave the axis's extent, or go beyond the axis's entry in *ends*: the first value
    that is not needed.
    """
    bindings: list[Expr] = []
    loops: list[tuple[Var, Expr]] = []
    guards: list[Expr] = []
    for axis in block.axes:
        wanted = ranges.get(axis.var, Range(ZERO, axis.extent))
        binding = wanted.begin
        if wanted.extent is not ONE:
            name = axis.var.name.removeprefix("v")
            var = Var(name if name.isidentifier() else f"ax{name}")
            bounds = bounds.bind(var, ZERO, wanted.extent - ONE)
            loops.append((var, wanted.extent))
            binding = simplify(wanted.begin + var, bounds)
        bindings.append(binding)
        if axis.var in ranges:
            end = ends.get(axis.var, axis.extent) if ends is not None else axis.extent
            guards += [binding >= ZERO, binding < end]
    result: Stmt = with_bindings(block, tuple(bindings), conjunction([simplify(g, bounds) for g in guards], bounds))
    for var, extent in reversed(loops):
        result = for_(var, extent, result)
    return result


def copy_nest(source: Buffer, target: Buffer, name: str) -> Stmt:
    """Returns loops and a block that copy the whole of *source* to *target*."""
    axes = tuple([Axis(Var(f"v{d}"), s, AxisKind.SPATIAL) for d, s in enumerate(source.shape)])
    where = tuple([a.var for a in axes])
    loops = tuple([Var(f"ax{d}") for d in range(source.rank)])
    body: Stmt = make_block(name, axes, loops, store(target, where, Load(source, where)))
    for v, a in zip(reversed(loops), reversed(axes), strict=True):
        body = for_(v, a.extent, body)
    return body


def fresh_block_name(fn: Function, base: str) -> str:
    """Returns *base*, or *base* with a number, so that no block of the function has the name."""
    return UniqueNames([b.name for b in blocks_in(fn.body)]).of(base)


def top_level(path: Path) -> Path:
    """Returns *path* up to the nest at the function's root: past allocations, views, lets and sequences."""
    for n, s in enumerate(path):
        if not isinstance(s, Alloc | View | Let | Seq):
            return path[: n + 1]
    return path


def own_nest(path: Path, keep: Iterable[Stmt] = ()) -> Path:
    """Returns *path* up to the outermost statement that contains only the block at its end and is not in *keep*."""
    kept = set(keep)
    end = len(path)
    while end > 1 and path[end - 2] not in kept and _only_child(path[end - 2], path[end - 1]):
        end -= 1
    return path[:end]


def _only_child(parent: Stmt, child: Stmt) -> bool:
    return isinstance(parent, For) and parent.body is child


def insert_beside(parent: For, child: Stmt, new: Stmt, *, before: bool) -> For:
    """Returns the loop *parent* with *new* just before (or after) *child*, a statement of its body."""
    body = parent.body
    made: list[Stmt] = []
    for part in body.body if isinstance(body, Seq) else (body,):
        beside = [new, part] if before else [part, new]
        made += beside if part is child else [part]
    return For(parent.var, parent.begin, parent.extent, parent.kind, seq(*made), parent.notes)


def parts_of(loop: For) -> tuple[Stmt, ...]:
    """Returns the statements directly in the body of *loop*."""
    return loop.body.body if isinstance(loop.body, Seq) else (loop.body,)

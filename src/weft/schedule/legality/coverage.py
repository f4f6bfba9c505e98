"""Whether a block stores to all of a region that it declares, under no condition: alone, or by the blocks inside it."""

from __future__ import annotations

from weft.ir import ONE, TRUE, ZERO, Bounds, Expr, Var, detect_iter_map, free_vars, simplify
from weft.loop import NOTHING, Alloc, Block, For, Let, Region, Seq, Stmt, Store, TensorInstruction, find_note, for_
from weft.schedule.cursors.tree import bind_loop, paths, the_block
from weft.schedule.legality.access_region import at_loops


def covers_region(block: Block, region: Region) -> bool:
    """Tells whether each instance of *block* surely stores to all of *region*, one that it declares to write.

    A block that starts a reduction must do so both at the start and after.
    """
    if find_note(block.notes, TensorInstruction) is not None:
        return True
    where = tuple([r.begin for r in region.ranges])
    parts = [p for p in (block.init, block.body) if p is not None]
    if all(r.extent is ONE for r in region.ranges) and all(_stores_to(p, region, where) for p in parts):
        return True
    return all(any(_fills_inside(path, region) for path in paths(p)) for p in parts)


def _stores_to(part: Stmt, region: Region, where: tuple[Expr, ...]) -> bool:
    return any(s.buffer is region.buffer and s.indices == where for s in _unconditional(part))


def _fills_inside(path: tuple[Stmt, ...], region: Region) -> bool:
    """Tells whether the block at the end of *path*, from the body of another, stores to all of *region* as its loops run."""
    if not isinstance(path[-1], Block) or not all(isinstance(s, For | Seq | Alloc) for s in path[:-1]):
        return False
    inner = the_block(path)
    loops = [s for s in path if isinstance(s, For)]
    if inner.predicate is not TRUE or any(f.begin is not ZERO for f in loops):
        return False
    return any(
        w.buffer is region.buffer and covers_region(inner, w) and _reach(inner, w, loops, region) for w in inner.writes
    )


def _reach(inner: Block, written: Region, loops: list[For], region: Region) -> bool:
    """Tells whether *inner*, as *loops* run, writes every element of *region*."""
    where, elements = element_of(written)
    bounds = Bounds()
    for f in (*loops, *elements):
        bounds = bind_loop(bounds, f)
    indices = [simplify(at_loops(inner, i) - r.begin, bounds) for i, r in zip(where, region.ranges, strict=True)]
    extents = {f.var: f.extent for f in (*loops, *elements)}
    if any(v not in extents for i in indices for v in free_vars(i)):
        return False
    found = detect_iter_map(indices, extents, TRUE, [r.extent for r in region.ranges], bounds)
    return found is not None and found.surjective


def element_of(region: Region) -> tuple[list[Expr], list[For]]:
    """Returns the indices of any element of *region*, and the loops that they run over: none if it is one element."""
    where: list[Expr] = []
    loops: list[For] = []
    for r in region.ranges:
        if r.extent is ONE:
            where.append(r.begin)
        else:
            loops.append(for_(Var("e"), r.extent, NOTHING))
            where.append(r.begin + loops[-1].var)
    return where, loops


def _unconditional(body: Stmt) -> list[Store]:
    """Returns the stores of a block's body that it makes under no condition."""
    stores: list[Store] = []
    stack = [body]
    while stack:
        s = stack.pop()
        if isinstance(s, Store) and s.mask is None:
            stores.append(s)
        elif isinstance(s, Seq):
            stack += s.body
        elif isinstance(s, Let):
            stack.append(s.body)
    return stores

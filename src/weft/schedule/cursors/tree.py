"""Finding and replacing statements: loops by their variable, blocks by their name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from weft.ir import ONE, Bounds, Expr, Var, free_vars
from weft.loop import (
    NAME_OF,
    NOTHING,
    Alloc,
    Block,
    Buffer,
    For,
    Function,
    If,
    Name,
    Param,
    Region,
    Seq,
    Stmt,
    Store,
    outline,
    seq,
    sub_statements,
)
from weft.schedule.cursors.state import BlockRef, LoopRef, called, refuse

Path = tuple[Stmt, ...]
"""Statements from the root down to the one meant, each the child of the one before."""


@lru_cache(maxsize=256)
def _path(root: Stmt, name: Name) -> Path | None:
    """Returns the path to the first loop of a variable, block of a name or allocation of a buffer, None where there is none."""
    if name not in outline(root).names:
        return None
    path, s = [root], root
    while (name_of := NAME_OF.get(type(s))) is None or name_of(s) != name:
        kids = s.bodies()
        s = kids[0] if len(kids) == 1 else next(k for k in kids if name in outline(k).names)
        path.append(s)
    return tuple(path)


def _loops_and_blocks(root: Stmt) -> tuple[For | Block, ...]:
    inside = outline(root).loops_and_blocks
    return (root, *inside) if isinstance(root, For | Block) else inside


def loop_path(fn: Function, loop: LoopRef) -> Path:
    """Returns the path to a loop; refuses one that the program does not have."""
    path = _path(fn.body, loop.var)
    return (
        path
        if path is not None
        else refuse(f"there is no loop {called(loop.var)} in the program any more", hint="take the block's loops anew")
    )


def block_path(fn: Function, block: BlockRef) -> Path:
    """Returns the path to a block; refuses one that the program does not have, naming those it has."""
    path = _path(fn.body, block.name)
    if path is None:
        known = ", ".join(b.name for b in blocks_in(fn.body))
        refuse(f"there is no block {block.name} in the program", hint=f"its blocks are: {known}")
    return path


def the_loop(path: Path) -> For:
    """Returns the loop that *path* leads to."""
    found = path[-1]
    if not isinstance(found, For):
        raise TypeError(f"not a path to a loop, but to a {type(found).__name__}")
    return found


def the_block(path: Path) -> Block:
    """Returns the block that *path* leads to."""
    found = path[-1]
    if not isinstance(found, Block):
        raise TypeError(f"not a path to a block, but to a {type(found).__name__}")
    return found


def loops_on(path: Path) -> list[For]:
    """Returns the loops of the innermost scope on *path*, outermost first: those below the last enclosing block."""
    loops: list[For] = []
    for s in path[:-1]:
        if type(s) is For:
            loops.append(s)
        elif type(s) is Block:
            loops = []
    return loops


def blocks_in(root: Stmt) -> list[Block]:
    """Returns the blocks under *root* in program order, those inside other blocks too."""
    return [s for s in _loops_and_blocks(root) if type(s) is Block]


def loops_in(root: Stmt) -> list[For]:
    """Returns the loops under *root* in program order, those inside blocks too."""
    return [s for s in _loops_and_blocks(root) if type(s) is For]


def outer_blocks(root: Stmt) -> list[Block]:
    """Returns the blocks under *root* in program order, without those inside other blocks."""
    return [p[-1] for p in paths(root) if isinstance(p[-1], Block)]


def paths(root: Stmt) -> Iterator[Path]:
    """Yields the path from *root* to each statement, not going into blocks."""
    stack: list[Path] = [(root,)]
    while stack:
        path = stack.pop()
        yield path
        if not isinstance(path[-1], Block):
            stack += [(*path, c) for c in reversed(sub_statements(path[-1]))]


def replace(path: Path, new: Stmt) -> Stmt:
    """Returns the root of *path* with the statement at its end replaced; `NOTHING` removes it, and parents left empty."""
    old = path[-1]
    for parent in reversed(path[:-1]):
        new = with_child(parent, old, new)
        old = parent
    return new


def with_child(parent: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """Returns *parent* with one of its statements replaced; it vanishes if nothing is left in it."""
    if isinstance(parent, Seq):
        return seq(*[new if s is old else s for s in parent.body])
    if new is NOTHING and not isinstance(parent, If | Block):
        return NOTHING
    made = parent.rebuild([new if c is old else c for c in parent.children()])
    if not isinstance(made, Stmt):
        raise TypeError("a statement was rebuilt as something else")
    return made


def bounds_on(path: Sequence[Stmt], fn: Function) -> Bounds:
    """Returns the ranges of the loop variables on *path*; the sizes of parameters are at least one."""
    loops = tuple([(s.var, s.begin, s.extent) for s in path if isinstance(s, For)])
    return _bounds(fn.params, loops)


@lru_cache(maxsize=256)
def _bounds(params: tuple[Param, ...], loops: tuple[tuple[Var, Expr, Expr], ...]) -> Bounds:
    """Builds bounds once for many queries about one place: they cache simplified expressions."""
    if loops:
        var, begin, extent = loops[-1]
        return _bounds(params, loops[:-1]).bind(var, begin, begin + extent - ONE)
    bounds = Bounds()
    for p in params:
        if isinstance(p, Var):
            bounds = bounds.bind(p, None, None)
    for v in _sizes(params):
        bounds = bounds.bind(v, 1, None)
    return bounds


def bind_loop(bounds: Bounds, loop: For) -> Bounds:
    """Returns *bounds* with the range of the variable of *loop*."""
    return bounds.bind(loop.var, loop.begin, loop.begin + loop.extent - ONE)


def symbols_of(fn: Function) -> list[Var]:
    """Returns the symbolic sizes of a function: its scalar parameters, and the variables in its buffers' shapes."""
    return list(dict.fromkeys([*[p for p in fn.params if isinstance(p, Var)], *_sizes(fn.params)]))


def _sizes(params: Sequence[Param]) -> list[Var]:
    return [v for p in params if isinstance(p, Buffer) for s in p.shape for v in free_vars(s)]


def alloc_of(root: Stmt, buffer: Buffer) -> Path | None:
    """Returns the path to the statement that allocates *buffer*, or None for a parameter."""
    return _path(root, buffer)


def drop_alloc(root: Stmt, buffer: Buffer) -> Stmt:
    """Removes the allocation of a buffer that nothing uses any more."""
    path = alloc_of(root, buffer)
    if path is None:
        return root
    found = path[-1]
    return replace(path, found.body) if isinstance(found, Alloc) else root


def add_alloc(root: Stmt, buffer: Buffer) -> Stmt:
    """Allocates *buffer* around everything; lowering moves it inwards."""
    return Alloc(buffer, root)


def plain_store(block: Block) -> Store:
    """Returns the one store that is the whole body of *block*; refuses a block of another form."""
    if not isinstance(block.body, Store) or block.body.mask is not None:
        refuse(
            f"{block.name} is not a single assignment",
            block,
            "only a block that is one unconditional assignment will do",
        )
    return block.body


def regions_of(regions: Sequence[Region], buffer: Buffer) -> list[Region]:
    """Returns those of *regions* that are of *buffer*."""
    return [r for r in regions if r.buffer is buffer]

"""Sets the shape of the tile registers before each nest that uses them, and gives them up after it.

    C = alloc("tile", f32[1024])              C = alloc("tile", f32[1024])
    for i in range(0, 8):            ->       call("x86.amx_configure", 16)
        ... instructions on C                 for i in range(0, 8):
                                                  ... instructions on C
                                              call("x86.amx_release")

A configuration takes as long as some products of tiles: it goes around the outermost statement all of whose tiles have as many
rows, in the function that a thread runs. Tiles lose their contents with it. Buffers that take turns, each set to zero when that
before has been stored, as those of the parts of a loop that was cut, share the registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from weft.ir import const
from weft.loop import Address, Alloc, Buffer, Call, Program, Stmt, seq, statements
from weft.lower.stmt_rewriter import StmtRewriter, Visited, map_functions
from weft.support.dtypes import i64
from weft.support.errors import LoweringError
from weft.targets import TILE
from weft.targets.instructions import CONFIGURE, RELEASE, TILE_OPERATIONS


def configure_tiles(program: Program) -> Program:
    """Returns *program* with the tile registers set around the nests that use them.

    Raises `LoweringError` for a nest with two buffers of tiles that are live at once, or with tiles of several heights.
    """
    return map_functions(program, lambda f: _Configure().rewrite(f.body))


class _Configure(StmtRewriter):
    """Goes into statements until all tiles inside have as many rows."""

    def visit(self, s: Stmt) -> Visited:
        calls = [c for c in statements(s) if isinstance(c, Call) and c.callee in TILE_OPERATIONS]
        rows = {TILE_OPERATIONS[c.callee].rows for c in calls}
        buffers = {_tiles(c) for c in calls}
        if not calls:
            return s
        fits = len(rows) == 1 and _take_turns(calls)
        if isinstance(s, Alloc) or (len(buffers) > 1 and not fits):
            return super().visit(s)
        if len(rows) > 1:
            raise LoweringError(
                f"tiles of {buffers.pop().name} have {sorted(rows)} rows", hint="give all of them as many"
            )
        if not fits:
            raise LoweringError(
                f"{buffers.pop().name} shares a nest with other tiles",
                hint="compute the tiles of each buffer in a loop of its own",
            )
        return seq(Call(CONFIGURE, (const(rows.pop(), i64),)), s, Call(RELEASE, ()))


def _take_turns(calls: Sequence[Call]) -> bool:
    """Tells whether *calls* set each buffer of tiles to zero first, and store it before they go on to another."""
    turns = [[TILE_OPERATIONS[c.callee].kind for c in turn] for _, turn in groupby(calls, _tiles)]
    return all(kinds[0] == "zero" and kinds[-1] == "store" for kinds in turns)


def _tiles(c: Call) -> Buffer:
    """Returns the buffer of tiles that an instruction is given."""
    return next(a.buffer for a in c.args if isinstance(a, Address) and a.buffer.scope == TILE.name)

"""Strided vector loads of an unrolled loop, made together: a square tile is loaded by rows and transposed in registers.

    for u in unrolled(16): y[..., u, 0:16] = x[base + u + stride * (0:16)]

would gather sixteen times. All of it is sixteen contiguous loads of rows and a network of shuffles: first within the 128-bit
parts of the vectors, by interleaving, then of whole parts. On a Zen 5 that takes a third of the gathers' time.

Lanes that a mask leaves out are rows of zeros. Where fewer iterations are left than a vector has lanes, rows are read in part.
"""

from __future__ import annotations

from weft.codegen.llvm.core.affine_operands import Affine, Lanes
from weft.codegen.llvm.core.emitter import Emitter, Memory, Unrolled
from weft.codegen.llvm.core.ir_types import lanes_on
from weft.codegen.llvm.core.symbolic_indices import as_lanes
from weft.codegen.llvm.expressions.operators import prefix
from weft.codegen.llvm.memory.addresses import contiguous, gather_key, remember, remembered, shuffle
from weft.ir import And, Expr, Node, Or, Select, Var, free_vars, index, post_order, substitute
from weft.loop import Call, For, If, LoopKind, While
from weft.support.dtypes import DType

PART_BYTES = 16
"""Shuffles within parts of this size are cheap on all of x86-64; a part is the unit of the shuffles across."""

LEAST_COLUMNS = 1 / 4
"""The part of a tile's columns that must be wanted; fewer are gathered."""


def is_straight(frame: Unrolled) -> bool:
    """Tells whether all of a loop's body is run whenever it is entered, in the same lanes in each iteration."""
    if frame.straight is None:
        frame.straight = not any(_may_skip(n, frame.loop.var) for n in post_order(frame.loop.body))
    return frame.straight


def _may_skip(n: Node, iteration: Var) -> bool:
    if isinstance(n, (Select, And, Or)):
        decides = n.cond if isinstance(n, Select) else n.a
        return decides.dtype.lanes == 1 or iteration in free_vars(decides)
    return isinstance(n, (If, While, Call)) or (isinstance(n, For) and n.kind is not LoopKind.UNROLLED)


def transpose_tile(f: Emitter, e: Expr, memory: Memory, dtype: DType, at: Lanes, mask: str | None) -> None:
    """Loads and transposes the tile that a strided load with index *e* begins, if it does; remembers its columns.

    The lanes of a *mask* must be known.
    """
    wanted = lanes_on(mask, dtype.lanes)
    if not _fits(f, dtype) or at.rest is not None or wanted is None:
        return
    if remembered(f, memory, gather_key(memory, dtype, at, mask)) is not None:
        return
    for frame in reversed(f.unrolled):
        columns = min(dtype.lanes, frame.extent - frame.position)
        enough = columns == dtype.lanes or (f.target.isa.masked_memory and columns >= LEAST_COLUMNS * dtype.lanes)
        if not enough or frame.level != f.build.level or not is_straight(frame):
            continue
        if _columns_adjoin(f, e, frame, at, columns):
            made = _columns(f, memory, dtype, at, wanted, columns)
            for k, column in enumerate(made[:columns]):
                there = Lanes(at.base.plus(Affine(k)), at.step, at.count)
                remember(f, memory, gather_key(memory, dtype, there, mask), column)
            return


def _fits(f: Emitter, dtype: DType) -> bool:
    """Tells whether a square tile of *dtype* is made of registers that the shuffles can handle."""
    size, lanes = dtype.element.bytes, dtype.lanes
    whole = lanes & (lanes - 1) == 0 and lanes * size // PART_BYTES in (1, 2, 4)
    return whole and lanes * size * 8 <= f.target.isa.vector_bits and not dtype.is_bool


def _columns_adjoin(f: Emitter, e: Expr, frame: Unrolled, at: Lanes, columns: int) -> bool:
    """Tells whether the next iterations, as many as there are *columns*, read the elements next to those at *at*."""
    first = frame.begin + frame.position
    for k in range(1, columns):
        with f.scope():
            there = as_lanes(f.value(substitute(e, {frame.loop.var: index(first + k)})), at.count)
        apart = there.base.plus(at.base, -1)
        same_step = there.step.plus(at.step, -1) == Affine(0) and there.rest is None
        if not same_step or apart != Affine(k):
            return False
    return True


def _columns(f: Emitter, memory: Memory, dtype: DType, at: Lanes, wanted: list[bool], columns: int) -> list[str]:
    """Loads the first *columns* elements of the *wanted* rows of a tile; returns its columns."""
    part = prefix(f, Affine(columns), dtype.lanes) if columns < dtype.lanes else None
    rows: list[str] = []
    for r, is_wanted in enumerate(wanted):
        offset = at.base.plus(at.step, r).times(dtype.element.bytes)
        rows.append(contiguous(f, memory, dtype, offset, part) if is_wanted else "zeroinitializer")
    return transposed(f, dtype, rows)


def transposed(f: Emitter, dtype: DType, rows: list[str]) -> list[str]:
    """Returns the columns of the square matrix whose rows are vectors of *dtype*."""
    per_part = PART_BYTES // dtype.element.bytes
    step = 1
    while step < per_part:
        rows = _interleave(f, dtype, rows, step, per_part)
        step *= 2
    order = [_reversed_bits(c, per_part) for c in range(per_part)]
    parts = dtype.lanes // per_part
    columns = [""] * dtype.lanes
    for c in range(per_part):
        group = [rows[g * per_part + order[c]] for g in range(parts)]
        for k, column in enumerate(_transpose_parts(f, dtype, group, per_part)):
            columns[k * per_part + c] = column
    return columns


def _reversed_bits(number: int, size: int) -> int:
    width = size.bit_length() - 1
    return int(format(number, f"0{width}b")[::-1], 2) if width else 0


def _interleave(f: Emitter, dtype: DType, rows: list[str], step: int, per_part: int) -> list[str]:
    """Interleaves groups of *step* elements of rows *step* apart, within each part: low halves, then high halves."""
    lanes, made = dtype.lanes, list(rows)
    for i in range(lanes):
        if not i & step:
            for half, to in ((0, i), (per_part // 2, i + step)):
                picks: list[int] = []
                for part in range(0, lanes, per_part):
                    for k in range(part + half, part + half + per_part // 2, step):
                        picks += [*range(k, k + step), *range(lanes + k, lanes + k + step)]
                made[to] = shuffle(f, dtype, rows[i], rows[i + step], picks)
    return made


def _transpose_parts(f: Emitter, dtype: DType, group: list[str], per_part: int) -> list[str]:
    """Returns vectors of which the k-th holds part k of each vector of *group*, by taking even and odd parts of pairs."""
    if len(group) == 1:
        return group
    lanes = dtype.lanes
    for _ in range(len(group).bit_length() - 1):
        halves: list[list[str]] = [[], []]
        for a, b in zip(group[::2], group[1::2], strict=True):
            for odd in (0, 1):
                starts = [s + p for s in (0, lanes) for p in range(odd * per_part, lanes, 2 * per_part)]
                picks = [s + k for s in starts for k in range(per_part)]
                halves[odd].append(shuffle(f, dtype, a, b, picks))
        group = halves[0] + halves[1]
    return group

"""The layouts of operand tiles in swizzled shared memory, as `wgmma` reads them.

    A[row, term]      rows of terms: as row 8 * h + g of 16 lies row 2 * g + h of the matrix, see `targets.instructions.nvidia`
    B[column, term]   rows of terms ("K-major")
    B[term, column]   rows of the columns of as many bytes, of one term after another ("MN-major"): of 16 bits only

A row has the bytes of `SWIZZLED_BYTES`. (NVIDIA, "Parallel Thread Execution ISA" 8.0, section 9.7.15.5.1.)
"""

from __future__ import annotations

from weft.ir import Var
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import block_of, inputs_of
from weft.schedule.rules.grid.patch_parts import is_formula
from weft.schedule.rules.grid.tile_axes import TileAxes, counts_terms
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError
from weft.targets.instructions import FRAGMENT, SWIZZLED_BYTES, TURNED


def lay_out_swizzled(s: Schedule, ref: BlockRef, copy: BlockRef, axes: TileAxes, sizes: tuple[int, int, int]) -> None:
    """Lays out a copy of a factor in parts of so many rows, columns and terms; refuses a left factor that lies across."""
    written = block_of(s, copy).writes[0].buffer
    read = next(x for x in inputs_of(block_of(s, ref)) if x.buffer is written).indices
    names = [f"x{n}" for n in range(len(read))]
    along = [axes.depth.var if counts_terms(i, axes.depth.var, sizes[2]) else i for i in read]
    place = {i: x for x, i in zip(names, along, strict=True) if isinstance(i, Var)}
    side = axes.row if axes.row.var in place else axes.column
    x, k = place.get(side.var), place.get(axes.depth.var)
    if x is None or k is None or names[-1] not in (x, k):
        raise ScheduleError(f"the parts of {written.name} are no matrices")
    wide, deep = sizes[0] if side is axes.row else sizes[1], sizes[2]
    row = SWIZZLED_BYTES // written.dtype.bytes
    outer = [*[n for n in names if n not in (x, k)], f"{x} // {wide}", f"{k} // {deep}"]
    inner = _inside(x, k, (wide, deep, row), _form(s, copy, by_terms=names[-1] == k, of_rows=side is axes.row))
    s.transform_layout(copy, written.name, f"{', '.join(names)} -> {', '.join([*outer, *inner])}")


def _form(s: Schedule, copy: BlockRef, *, by_terms: bool, of_rows: bool) -> str:
    """Returns how a part is laid out: as fragments of rows, by the terms of each column, or turned by the instruction."""
    written = block_of(s, copy).writes[0].buffer
    if of_rows and not by_terms:
        raise ScheduleError(f"the rows of {written.name} are not rows of terms")
    if of_rows or by_terms or is_formula(s, copy):
        return "fragments" if of_rows else "columns"
    if written.dtype not in TURNED:
        raise ScheduleError(f"the columns of {written.name} are not rows of terms")
    return "turned"


def _inside(x: str, k: str, sizes: tuple[int, int, int], form: str) -> list[str]:
    """Returns the indices inside of a part, of so many rows or columns and terms, and of elements in a row of swizzled memory."""
    wide, deep, row = sizes
    f = FRAGMENT
    forms = {
        "fragments": [
            f"{x} % {wide} // {f.rows}",
            f"{x} % {f.halves}",
            f"{x} // {f.halves} % {f.groups}",
            f"{k} % {deep}",
        ],
        "columns": [f"{x} % {wide}", f"{k} % {deep}"],
        "turned": [f"{x} % {wide} // {row}", f"{k} % {deep}", f"{x} % {row}"],
    }
    return forms[form]

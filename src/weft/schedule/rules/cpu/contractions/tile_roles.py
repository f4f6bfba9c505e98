"""The roles of a reduction's loops in a tile: rows, which index only the left factor, and columns, which index only the right.

A factor may index an axis by groups, as the input of a grouped convolution does for output channels. The axis then has two parts:
the groups, which index both factors, and the values inside a group, which index only the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.cost import size_of
from weft.ir import ZERO, Const, Expr, FloorDiv, Node, Var, index, map_nodes, mentions, post_order
from weft.loop import Axis, Block, Load
from weft.schedule.rules.block_facts import contraction_of, spatial_axes, uses_axis


@dataclass(frozen=True)
class Part:
    """The range of a loop of a nest: an axis, its groups of *group* values, or the values *inside* such a group."""

    axis: Axis
    extent: Expr
    group: int = 1
    inside: bool = False

    @property
    def size(self) -> int:
        """How many values it has, or a guess."""
        return size_of(self.extent)

    def moves(self, load: Load) -> bool:
        """Tells whether the indices of *load* depend on it."""
        if not self.inside:
            return uses_axis(load, self.axis.var)
        groups: dict[Node, Node] = {self.axis.var // self.group: ZERO}
        return any(mentions(map_nodes(i, None, memo=groups), self.axis.var) for i in load.indices)


def parts_of(axis: Axis, block: Block) -> list[Part]:
    """Returns the parts of an axis that the factors of a product use differently: groups and their values, or the whole axis."""
    found = contraction_of(block)
    if found is not None and isinstance(axis.extent, Const) and axis is not spatial_axes(block)[-1]:
        for group in sorted({g for x in (found.left, found.right) for g in _groups(x, axis.var)}):
            groups, rest = divmod(size_of(axis.extent), group)
            inside = Part(axis, index(group), group, inside=True)
            if groups > 1 and not rest and inside.moves(found.left) != inside.moves(found.right):
                return [Part(axis, index(groups), group), inside]
    return [Part(axis, axis.extent)]


def _groups(load: Load, var: Var) -> list[int]:
    """Returns the constants that *load* divides a variable by."""
    divided = [n for i in load.indices for n in post_order(i) if isinstance(n, FloorDiv) and n.a is var]
    return [int(n.b.value) for n in divided if isinstance(n.b, Const)]


@dataclass(frozen=True)
class Roles:
    """The roles of the parts of a nest, by position: `row` and `column` are tiled beside the last.

    Where a tile has room for all of `row`, it may hold several values of `outer_row` too. With *shared*, the row indexes both
    factors, like the number of a matrix in a batch: each row has a right factor of its own.
    """

    row: int | None
    column: int | None
    outer_row: int | None = None
    shared: bool = False


def roles_of(block: Block, parts: Sequence[Part]) -> Roles:
    """Chooses which of *parts*, all but the last, to tile: one that indexes only the left factor, and one only the right."""
    found = contraction_of(block)
    longer = [n for n, p in enumerate(parts) if p.size > 1]
    if found is None:
        return Roles(_innermost(longer), None)
    of_left = {n for n, p in enumerate(parts) if p.moves(found.left)}
    of_right = {n for n, p in enumerate(parts) if p.moves(found.right)}
    rows = [n for n in longer if n in of_left - of_right]
    columns = sorted(of_right - of_left)
    if not rows and not columns:
        return Roles(_innermost(longer), None, shared=True)
    row, outer_row = _innermost(rows), _innermost(rows[:-1])
    return Roles(row, _innermost(columns), outer_row if outer_row is not None and outer_row + 1 == row else None)


def _innermost(positions: Sequence[int]) -> int | None:
    """Returns the last of *positions*; None if there are none."""
    return positions[-1] if positions else None

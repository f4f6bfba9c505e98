"""Dimensions of which a range is known, and the symbolic sizes that stand for them.

    batch = 1..64        batch             a size with limits
    seq = 8..512:8       seq_by_8 * 8      so that divisions by 8 and remainders vanish wherever a shape has them

That all sizes are multiples of a number is no fact beside the formulas, but a part of them: no pass, rule or kernel has to be
told of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from weft.graph.core.type_text import dim_text
from weft.ir import INDEX, Const, Expr, Mul, Var
from weft.support.dim import Dim


@dataclass(frozen=True)
class Dimension:
    """A dimension called *name*, whose *sizes* are known: it is *unit*, a symbolic size, times their multiple."""

    name: str
    unit: Var
    sizes: Dim

    @property
    def size(self) -> Expr:
        """The size as an expression."""
        return self.unit if self.sizes.multiple == 1 else self.unit * self.sizes.multiple

    def text_of(self, size: Expr) -> str | None:
        """Returns *size* by the dimension's name, such as `seq`, `(seq * 2)` or `(seq // 4)`; None for one that is no part."""
        factor, multiple = 1, self.sizes.multiple
        if isinstance(size, Mul) and isinstance(size.b, Const):
            factor, size = int(size.b.value), size.a
        if size is not self.unit or (factor % multiple and multiple % factor):
            return None
        if factor == multiple:
            return self.name
        return (
            f"({self.name} * {factor // multiple})" if factor > multiple else f"({self.name} // {multiple // factor})"
        )


def size_text(size: Expr, dimensions: Collection[Dimension]) -> str:
    """Returns *size* by the names of the dimensions that it is made of."""
    names = {d.unit: f"({d.name} // {d.sizes.multiple})" for d in dimensions if d.sizes.multiple > 1}
    whole = [text for d in dimensions if (text := d.text_of(size)) is not None]
    return whole[0] if whole else dim_text(size, names)


def bounded_dimension(name: str, sizes: Dim, dims: dict[str, Var], known: dict[str, Dimension]) -> Dimension:
    """Returns the dimension called *name*: one of those *known*, or one more, whose unit is then one more of *dims*."""
    if name in known:
        return known[name]
    unit = name if sizes.multiple == 1 else f"{name}_by_{sizes.multiple}"
    while unit in dims:  # a name of the model's
        unit += "_"
    made = dims[unit] = Var(unit, INDEX, sizes.units)
    known[name] = Dimension(name, made, sizes)
    return known[name]

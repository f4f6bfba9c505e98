"""The indices that operators take as data: which input holds them, and from where to where they may be.

    @takes_indices("gather")
    def _gather_range(x: Shaped, indices: Shaped, *, axis: int = 0) -> IndexRange:
        return IndexRange(1, (either_way(x.shape[axis]),))

An operator says so in its own file, next to its formula. The formula itself never reads outside of a tensor, whatever the index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from weft.ir import ZERO, Expr

Limits: TypeAlias = tuple[Expr, Expr]
"""The least and the greatest value that an index may have."""


class Shaped(Protocol):
    """An object with a shape: a value of a graph, or a tensor."""

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents."""

    @property
    def rank(self) -> int:
        """The number of dimensions."""


@dataclass(frozen=True)
class IndexRange:
    """Where the elements of the input of this number may be: between one pair of limits, or each of the last dimension's its own.

    *what* is the word for such an element in messages.
    """

    input: int
    limits: tuple[Limits, ...]
    what: str = "index"
    by_column: bool = False


R = TypeVar("R", bound=Callable[..., IndexRange | None])

INDEX_RANGES: Final[dict[str, Callable[..., IndexRange | None]]] = {}
"""The limits of operators' indices: by the operator's name a function of its inputs and attributes."""


def takes_indices(name: str) -> Callable[[R], R]:
    """Registers the decorated function for the operator *name*; it returns None where any index will do."""

    def register(rule: R) -> R:
        INDEX_RANGES[name] = rule
        return rule

    return register


def either_way(size: Expr) -> Limits:
    """Returns the limits of an index into a dimension of *size* elements , counted from the end if negative."""
    return ZERO - size, size - 1


def index_range(op: str, inputs: Sequence[Shaped | None], attributes: Mapping[str, Any]) -> IndexRange | None:
    """Returns where the indices of a call of the operator *op* may be; None for one that takes none."""
    rule = INDEX_RANGES.get(op)
    return None if rule is None else rule(*inputs, **attributes)

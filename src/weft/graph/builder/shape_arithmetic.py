"""Arithmetic on shapes that frontends share; sizes may be symbolic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir import INDEX, Const, Expr, ExprLike, as_expr
from weft.ops import simplify_size


def static_sizes(sizes: Sequence[Expr]) -> list[int] | None:
    """Returns sizes as integers; None where one is symbolic."""
    found = [int(s.value) for s in sizes if isinstance(s, Const)]
    return found if len(found) == len(sizes) else None


def total(sizes: Sequence[ExprLike]) -> Expr | int:
    """Returns the product of sizes."""
    product: Expr | int = math.prod([int(s) for s in sizes if not isinstance(s, Expr)])
    for s in sizes:
        if isinstance(s, Expr):
            product = s * product
    return simplify_size(product) if isinstance(product, Expr) else product


def element_count(shape: Sequence[ExprLike]) -> Expr:
    """Returns the number of elements of *shape*, as an index expression."""
    return as_expr(total(shape), INDEX)

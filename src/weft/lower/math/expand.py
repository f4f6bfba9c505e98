"""Replaces applied functions in an expression by the arithmetic that computes them."""

from __future__ import annotations

from typing import TypeVar

from weft.ir import APPLIES, Add, Apply, Expr, Node, Rules, Sub, map_nodes, rewrite
from weft.lower.math.expansions import EXPANSIONS

N = TypeVar("N", bound=Node)


def expand(root: N, native: frozenset[str]) -> N:
    """Returns *root*, an expression or statement, with every function outside *native* expanded as far as the table goes.

    A function that has no expansion is left for the backend to refuse. Fused multiply-adds appear if *native* has `fma`,
    and powers of two are multiplied by as such if it has `ldexp`. If it has `rounded`, its compiler may reassociate, and sums of
    sums are marked so that it does not: expansions compute rounding errors by such sums.
    """
    if not root.traits & APPLIES:
        return root
    fused, scales = "fma" in native, "ldexp" in native
    rules = Rules()

    @rules.on(Apply)
    def by_arithmetic(e: Apply) -> Node | None:
        if e.fn in native or e.fn not in EXPANSIONS or not e.args[0].dtype.is_float:
            return None
        made = EXPANSIONS[e.fn](*e.args, fused=fused, scales=scales)
        return _with_roundings(made, e.args) if "rounded" in native else made

    return rewrite(root, rules)


def _with_roundings(made: Expr, operands: tuple[Expr, ...]) -> Expr:
    """Returns an expansion, of *operands* that stay as they are, with each sum marked that another sum is made of."""

    def mark(n: Node) -> Node | None:
        if not isinstance(n, Add | Sub) or not n.dtype.is_float:
            return None
        a, b = (Apply("rounded", (k,)) if isinstance(k, Add | Sub) else k for k in (n.a, n.b))
        return None if (a, b) == (n.a, n.b) else type(n)(a, b)

    memo: dict[Node, Node] = {a: a for a in operands}
    return map_nodes(made, mark, memo=memo)

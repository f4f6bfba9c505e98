"""Replaces applied functions in an expression by the arithmetic that computes them."""

from __future__ import annotations

from typing import TypeVar

from weft.ir import Apply, Node, Rules, rewrite
from weft.lower.math.expansions import EXPANSIONS

N = TypeVar("N", bound=Node)


def expand(root: N, native: frozenset[str]) -> N:
    """Returns *root*, an expression or statement, with every function outside *native* expanded as far as the table goes.

    A function that has no expansion is left for the backend to refuse. Fused multiply-adds appear if *native* has `fma`,
    and powers of two are multiplied by as such if it has `ldexp`.
    """
    fused, scales = "fma" in native, "ldexp" in native
    rules = Rules()

    @rules.on(Apply)
    def by_arithmetic(e: Apply) -> Node | None:
        if e.fn in native or e.fn not in EXPANSIONS or not e.args[0].dtype.is_float:
            return None
        return EXPANSIONS[e.fn](*e.args, fused=fused, scales=scales)

    return rewrite(root, rules)

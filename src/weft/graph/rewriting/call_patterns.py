"""Matching small trees of calls.

    match(("mul", ("sqrt", "x"), "x"), value) == {"x": ...}     where value is mul(sqrt(v), v), or mul(v, sqrt(v))

A pattern is the name of a captured value, or an operator with the patterns of its inputs. A name that occurs twice must be
the same value twice, and one that begins with `#` captures constants only. The operands of a commutative operator match in
either order.
"""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from weft.graph.core.graph_values import Constant, Value

Pattern: TypeAlias = str | tuple["Pattern", ...]


def match(pattern: Pattern, value: Value | None, bound: dict[str, Value] | None = None) -> dict[str, Value] | None:
    """Returns the captured values where *value* is computed as *pattern* says, else None."""
    captured = {} if bound is None else bound
    if value is None:
        return None
    if isinstance(pattern, str):
        if pattern.startswith("#") and not is_known(value):
            return None
        return {**captured, pattern: value} if captured.get(pattern, value) is value else None
    op, *parts = pattern
    node = value.producer
    if node is None or node.op != op or len(node.inputs) != len(parts):
        return None
    found = _match_all(parts, node.inputs, captured)
    if found is None and node.operator.is_commutative:
        found = _match_all(parts, tuple(reversed(node.inputs)), captured)
    return found


def match_any(patterns: tuple[Pattern, ...], value: Value | None, bound: dict[str, Value]) -> dict[str, Value] | None:
    """Returns the captured values of the first of *patterns* that matches, else None."""
    for p in patterns:
        found = match(p, value, bound)
        if found is not None:
            return found
    return None


def untransposed(v: Value) -> tuple[Value, bool]:
    """Returns the operand of a transposition of the last two dimensions, and True; else *v* itself, and False."""
    node = v.producer
    swapped = (*range(v.rank - 2), v.rank - 1, v.rank - 2)
    if node is None or node.op != "transpose" or node.attribute("perm") != swapped or node.inputs[0] is None:
        return v, False
    return node.inputs[0], True


def is_known(v: Value | None) -> TypeGuard[Constant]:
    """Tells whether passes may compute with the elements of *v*: it is a constant, and made of no parameter."""
    return isinstance(v, Constant) and v.is_fixed


def known_scalar(v: Value | None) -> float | None:
    """Returns the one element of a constant that passes may compute with; None for other values."""
    return float(v.array.item()) if is_known(v) and v.size == 1 else None


def _match_all(
    parts: list[Pattern], inputs: tuple[Value | None, ...], captured: dict[str, Value]
) -> dict[str, Value] | None:
    for part, v in zip(parts, inputs, strict=True):
        found = match(part, v, captured)
        if found is None:
            return None
        captured = found
    return captured

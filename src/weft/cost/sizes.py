"""Sizes for cost estimates: a symbolic extent counts as its given size, or as a guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from weft.ir import Const, Expr, Var, free_vars, index, simplify, substitute
from weft.loop import Axis

FALLBACK_SIZE = 64
"""The number of iterations that a symbolic extent is taken to stand for."""

PICTURE_SIDES: Final = (192, 416, 640)
"""The sides that a picture of symbolic ones is taken to have, where a choice depends on more than how many places it has."""

_GIVEN: Final[ContextVar[Mapping[Var, int]]] = ContextVar("given sizes")


@contextmanager
def given_sizes(known: Mapping[Var, int]) -> Iterator[None]:
    """While it lasts, the symbolic sizes that are keys of *known* are taken for these numbers."""
    token = _GIVEN.set(known)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def guess_of(size: Var) -> int:
    """Returns the value assumed for a symbolic size: the given one, else a guess in its limits."""
    given = _GIVEN.get({}).get(size)
    return _within_limits(size, FALLBACK_SIZE) if given is None else given


def _within_limits(size: Var, wanted: int) -> int:
    low, high = size.size_range
    return max(low, min(wanted, high or wanted))


def size_of(e: Expr) -> int:
    """Returns a constant extent, that of sizes that are given, or a guess: no larger one where sizes have limits."""
    if isinstance(e, Const):
        return int(e.value)
    given, variables = _GIVEN.get({}), free_vars(e)
    if not all(v in given or v.limits is not None for v in variables):
        return FALLBACK_SIZE
    value = simplify(substitute(e, {v: index(guess_of(v)) for v in variables}))
    if not isinstance(value, Const):
        return FALLBACK_SIZE
    return max(1, int(value.value) if given else min(int(value.value), FALLBACK_SIZE))


def picture_shapes(shape: Sequence[Expr]) -> list[tuple[int, ...]]:
    """Returns what *shape* may be, the shape of a layer in a network on pictures of each of `PICTURE_SIDES`.

    Sizes that are given, or have limits, keep to these.
    """
    given, found = _GIVEN.get({}), dict[tuple[int, ...], None]()
    variables = {v for e in shape for v in free_vars(e)}
    for side in PICTURE_SIDES:
        with given_sizes({v: given.get(v, _within_limits(v, side)) for v in variables}):
            found[tuple([size_of(e) for e in shape])] = None
    return list(found)


def elements(axes: Sequence[Axis]) -> int:
    """Returns the number of instances along *axes*."""
    total = 1
    for a in axes:
        total *= size_of(a.extent)
    return total

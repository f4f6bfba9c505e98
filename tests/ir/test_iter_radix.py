"""The bijection analysis of constant maps answers as the general one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir import TRUE, Bounds, Expr, IterMap, Var, detect_iter_map, index
from weft.ir.affine import iter_map
from weft.ir.affine.iter_radix import judge

LOOPS = (Var("a"), Var("b"), Var("c"))
Map = tuple[list[Expr], dict[Var, Expr], list[Expr]]


@st.composite
def maps(draw: st.DrawFn) -> Map:
    """Sums of loops: often a mixed radix, sometimes with a loop that runs once, a gap, a base, or a loop used twice."""
    sizes = draw(st.tuples(*[st.integers(1, 5) for _ in LOOPS]))
    order = draw(st.permutations(list(zip(LOOPS, sizes, strict=True))))
    cut = draw(st.integers(0, len(LOOPS)))
    bindings: list[Expr] = []
    extents: list[Expr] = []
    for part in (order[:cut], order[cut:]):
        odd = draw(st.sampled_from(["", "", "base", "gap", "twice", "extent"]))
        total: Expr = index(int(odd == "base"))
        count = 1
        for v, size in part:
            total = total + v * (count + int(odd == "gap"))
            count *= size
        bindings.append(total + LOOPS[0] if odd == "twice" else total)
        extents.append(index(count + int(odd == "extent")))
    return bindings, {v: index(size) for v, size in zip(LOOPS, sizes, strict=True)}, extents


def in_general(bindings: Sequence[Expr], loops: Mapping[Var, Expr], extents: Sequence[Expr]) -> IterMap | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iter_map, "judge", lambda *_: None)
        return detect_iter_map(bindings, loops, TRUE, extents, Bounds())


@given(maps())
def test_the_answer_is_the_general_one(case: Map) -> None:
    bindings, loops, extents = case
    assert judge(bindings, loops, TRUE, extents) is not None
    assert detect_iter_map(bindings, loops, TRUE, extents, Bounds()) == in_general(bindings, loops, extents)


def test_what_is_not_constant_is_left_to_the_general_one() -> None:
    a, b, _ = LOOPS
    n = Var("n")
    two = {a: index(2), b: index(3)}
    assert judge([a, b], {a: index(2), b: n}, TRUE, [index(2), n]) is None
    assert judge([a, b], two, a < index(1), [index(2), index(3)]) is None
    assert judge([a // 2, b], two, TRUE, [index(2), index(3)]) is None
    assert judge([index(1) - a, b], two, TRUE, [index(2), index(3)]) is None
    assert judge([a + n, b], two, TRUE, [index(2), index(3)]) is None

"""Which instances touch an element, against enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.support.sampling import tried

from weft.ir import EMPTY, ONE, ZERO, Const, Expr, Select, Var, index, minimum, simplify, substitute
from weft.ir.bounds.fold import constant_value
from weft.te.inverse import Preimage, preimage

Access = Callable[..., Sequence[Expr]]


def value(e: Expr, values: Mapping[Var, int]) -> Any:
    found = constant_value(simplify(substitute(e, {v: index(n) for v, n in values.items()})))
    assert found is not None
    return found


def solve(
    access: Access, extents: Sequence[int], shape: Sequence[int]
) -> tuple[list[Var], list[Var], Preimage, list[Expr]]:
    variables = [Var(n) for n in "ijkl"[: len(extents)]]
    element = [Var(f"e{d}") for d in range(len(shape))]
    bounds = EMPTY
    for v, size in zip(element, shape, strict=True):
        bounds = bounds.bind(v, ZERO, size - 1)
    indices = list(access(*variables))
    found = preimage(indices, element, dict(zip(variables, [index(n) for n in extents], strict=True)), bounds)
    return variables, element, found, indices


def check(access: Access, extents: Sequence[int], shape: Sequence[int]) -> Preimage:
    """Fails unless, for each element, the solution gives each instance that touches it once, and no other."""
    variables, element, found, indices = solve(access, extents, shape)
    touched: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for instance in itertools.product(*[range(n) for n in extents]):
        at = dict(zip(variables, instance, strict=True))
        touched.setdefault(tuple([value(i, at) for i in indices]), []).append(instance)
    free = list(found.free)
    sizes = [int(e.value) for e in found.free.values() if isinstance(e, Const)]
    for where in itertools.product(*[range(n) for n in shape]):
        got = []
        for choice in itertools.product(*[range(n) for n in sizes]):
            at = dict(zip([*element, *free], [*where, *choice], strict=True))
            if all(value(c, at) for c in found.where):
                got.append(tuple([value(found.values[v], at) for v in variables]))
        assert sorted(got) == sorted(touched.get(where, [])), (where, found)
    return found


SOLVED_COMPLETELY: dict[str, tuple[Access, Sequence[int], Sequence[int]]] = {
    "transposed": (lambda i, j: (j, i), (3, 4), (4, 3)),
    "shifted": (lambda i: (i + 2,), (3,), (7,)),
    "strided": (lambda i: (i * 3 + 1,), (3,), (9,)),
    "reversed": (lambda i: (4 - i,), (5,), (5,)),
    "reversed, strided": (lambda i: (8 - i * 2,), (5,), (9,)),
    "flat": (lambda i, j: (i * 4 + j,), (3, 4), (12,)),
    "flat with a gap": (lambda i, j: (i * 5 + j + 1,), (3, 4), (16,)),
    "flat, partly reversed": (lambda i, j: (i * 4 + 3 - j,), (3, 4), (12,)),
    "digits": (lambda i: (i // 4, i % 4), (12,), (3, 4)),
    "three digits": (lambda i: (i // 6, i // 2 % 3, i % 2), (24,), (4, 3, 2)),
    "digits of a short axis": (lambda i: (i // 4, i % 4), (10,), (3, 4)),
    "reshaped": (lambda i, j: ((i * 4 + j) // 6, (i * 4 + j) % 6), (3, 4), (2, 6)),
    "shuffled": (lambda i, j: (i % 2 * 3 + j, i // 2), (8, 3), (6, 4)),
    "skewed": (lambda i, j: (i, i + j), (3, 4), (3, 6)),
    "diagonal": (lambda i: (i, i), (3,), (3, 3)),
    "unit axes": (lambda i, j, k: (i, j), (1, 3, 1), (1, 3)),
    "nothing": (lambda i: (ZERO,), (1,), (2,)),
}
IN_PART: dict[str, tuple[Access, Sequence[int], Sequence[int], int]] = {
    "broadcast": (lambda i, j: (j,), (3, 4), (4,), 3),
    "window": (lambda i, k: (i + k,), (6, 3), (8,), 3),
    "strided window": (lambda i, k: (i * 2 + k,), (6, 3), (13,), 3),
    "dilated window": (lambda i, k: (i + k * 2,), (6, 3), (10,), 3),
    "wide strides": (lambda i, k: (i * 2 + k * 3,), (6, 3), (17,), 3),
    "upsampled": (lambda i: (i // 3,), (9,), (3,), 3),
    "upsampled, cut": (lambda i: (i // 3,), (8,), (3,), 3),
    "tiled": (lambda i: (i % 4,), (10,), (4,), 3),
    "constant": (lambda i: (index(1),), (3,), (3,), 3),
    "not linear": (lambda i, j: (i * j, j), (3, 3), (5, 3), 3),
    "a minimum": (lambda i: (minimum(i, 2),), (5,), (3,), 5),
}


@pytest.mark.parametrize("name", SOLVED_COMPLETELY)
def test_solved_completely(name: str) -> None:
    assert not check(*SOLVED_COMPLETELY[name]).free


@pytest.mark.parametrize("name", IN_PART)
def test_solved_in_part(name: str) -> None:
    """What is left to try for an element is no more than must be."""
    access, extents, shape, tries = IN_PART[name]
    found = check(access, extents, shape)
    total = 1
    for e in found.free.values():
        assert isinstance(e, Const)
        total *= int(e.value)
    assert total == tries


def test_symbolic_sizes() -> None:
    n, m, i, e, f = (Var(name) for name in ("n", "m", "i", "e", "f"))
    bounds = EMPTY.bind(n, ONE, None).bind(m, ONE, None).bind(e, ZERO, n - 1).bind(f, ZERO, m - 1)
    found = preimage([i // m, i % m], [e, f], {i: n * m}, bounds)
    assert not found.free
    assert not found.where
    assert found.values[i] is simplify(e * m + f)


@st.composite
def accesses(draw: Any) -> tuple[Access, list[int], list[int]]:
    """Random quasi-affine accesses of two or three variables."""
    extents = draw(st.lists(st.integers(1, 5), min_size=2, max_size=3))
    rank = draw(st.integers(1, 2))

    def term(variables: Sequence[Expr]) -> Expr:
        v: Expr = draw(st.sampled_from(list(variables)))
        if draw(st.integers(0, 3)) == 0:
            v = v * draw(st.sampled_from([1, 2, 4])) + draw(st.sampled_from(list(variables)))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            v = v // draw(st.sampled_from([2, 3, 4]))
        elif kind == 1:
            v = v % draw(st.sampled_from([2, 3, 4]))
        scale: int = draw(st.sampled_from([1, 1, 2, 3, -1]))
        return v * scale

    recorded: list[tuple[tuple[Var, ...], list[Expr]]] = []

    def access(*variables: Var) -> list[Expr]:
        if not recorded:
            made = []
            for _ in range(rank):
                e = term(variables) + draw(st.integers(0, 3))
                made.append(e + term(variables) if draw(st.booleans()) else e)
            recorded.append((variables, made))
        known, made = recorded[0]
        return [substitute(e, dict(zip(known, variables, strict=True))) for e in made]

    access(*[Var(n) for n in "ijk"[: len(extents)]])
    return access, extents, draw(st.lists(st.integers(4, 9), min_size=rank, max_size=rank))


@tried(38, 150, accesses())
def test_random_accesses(drawn: tuple[Access, list[int], list[int]]) -> None:
    check(*drawn)


def test_a_choice_stays_a_condition() -> None:
    def access(i: Var) -> list[Expr]:
        return [Select(i < 2, i, i - 2)]

    check(access, (5,), (3,))

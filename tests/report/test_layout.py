"""Boxes apart from one another, all edges downwards, and none through a box."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.cli.report.layered_layout import BOX_GAP, LAYER_GAP, Edge, Layout, lay_out

SIZE = (100.0, 40.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[Edge]]:
    """Boxes of several sizes, with edges from earlier to later ones."""
    count = draw(st.integers(1, 14))
    sizes = [(float(draw(st.integers(20, 200))), float(draw(st.integers(20, 60)))) for _ in range(count)]
    pairs = list(combinations(range(count), 2))
    return sizes, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_nothing_overlaps_and_all_leads_down(graph: tuple[list[tuple[float, float]], list[Edge]]) -> None:
    sizes, edges = graph
    found = lay_out(sizes, edges)
    areas = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (x, y), (w, h) in zip(found.places, sizes, strict=True)]
    for (a, b, c, d), (p, q, r, s) in combinations(areas, 2):
        assert (
            c + BOX_GAP - 1e-6 <= p or r + BOX_GAP - 1e-6 <= a or d + LAYER_GAP - 1e-6 <= q or s + LAYER_GAP - 1e-6 <= b
        )
    for left, top, right, bottom in areas:
        assert left >= -1e-6
        assert right <= found.width + 1e-6
        assert top >= -1e-6
        assert bottom <= found.height + 1e-6
    for (a, b), route in zip(edges, found.routes, strict=True):
        assert route[0] == (found.places[a][0], areas[a][3])
        assert route[-1] == (found.places[b][0], areas[b][1])
        assert all(u[1] <= v[1] for u, v in pairwise(route))


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_no_edge_passes_through_a_box(graph: tuple[list[tuple[float, float]], list[Edge]]) -> None:
    """Edges bend only between layers; in a layer they are vertical, beside its boxes."""
    sizes, edges = graph
    found = lay_out(sizes, edges)
    for (a, b), route in zip(edges, found.routes, strict=True):
        upright = [(u, v) for u, v in pairwise(route[1:-1]) if u[0] == v[0]]
        for (x, top), (_, bottom) in upright[::1]:
            for n, ((u, v), (w, h)) in enumerate(zip(found.places, sizes, strict=True)):
                if n not in (a, b) and v + h / 2 > top and v - h / 2 < bottom:
                    assert not u - w / 2 < x < u + w / 2


def test_a_chain_is_straight_beside_an_edge_that_passes_it() -> None:
    """0 -> 1 -> 2 -> 3, and 0 -> 3 around it."""
    found = lay_out([SIZE] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    xs = [x for x, _ in found.places]
    assert max(xs) - min(xs) < 2
    around = found.routes[3]
    assert all(abs(x - xs[1]) > SIZE[0] / 2 for x, _ in around[1:-1])


def test_branches_are_on_both_sides_of_where_they_meet() -> None:
    found = lay_out([SIZE] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    (a, _), (b, _), (c, _), (d, _) = found.places
    assert b < a < c
    assert abs((b + c) / 2 - d) < 1e-6


def test_what_nothing_leads_to_is_right_above_what_it_leads_to() -> None:
    """The box 1 is an input that is first read at the end of a chain."""
    found = lay_out([SIZE] * 5, [(0, 2), (2, 3), (3, 4), (1, 4)])
    assert found.places[1][1] == found.places[3][1]


def test_edges_do_not_cross_where_they_need_not() -> None:
    """Two chains that lie crosswise in the order of their boxes."""
    found = lay_out([SIZE] * 6, [(0, 3), (1, 2), (2, 5), (3, 4)])
    assert (found.places[0][0] < found.places[1][0]) == (found.places[3][0] < found.places[2][0])
    assert (found.places[0][0] < found.places[1][0]) == (found.places[4][0] < found.places[5][0])


def test_no_boxes() -> None:
    assert lay_out([], []) == Layout((), (), 0.0, 0.0)

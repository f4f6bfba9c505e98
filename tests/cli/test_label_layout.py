"""Labels of a scatter plot lie near to their points and over nothing."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from weft.cli.bench.label_layout import Box, Disc, place_labels

AREA = Box(0.0, 0.0, 1000.0, 500.0)
SIZE = (150.0, 16.0)


def overlap(a: Box, b: Box) -> bool:
    return (
        a.left < b.left + b.width
        and b.left < a.left + a.width
        and a.bottom < b.bottom + b.height
        and b.bottom < a.bottom + a.height
    )


def covers(box: Box, x: float, y: float, radius: float = 0.0) -> bool:
    return float(np.hypot(*np.subtract(box.nearest(x, y), (x, y)))) < radius + 1e-9


def inside(box: Box) -> bool:
    return (
        box.left >= AREA.left
        and box.left + box.width <= AREA.width
        and box.bottom >= AREA.bottom
        and box.bottom + box.height <= AREA.height
    )


def test_one_label_is_beside_its_point() -> None:
    disc = Disc(500.0, 250.0, 10.0)
    (box,) = place_labels([disc], [SIZE], AREA, [disc])
    assert not covers(box, disc.x, disc.y, disc.radius)
    assert covers(box, disc.x, disc.y, disc.radius + 20)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [1.0, 0.15])
def test_labels_keep_clear(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    xs, ys = 500 + 400 * spread * rng.uniform(-1, 1, 20), 250 + 200 * spread * rng.uniform(-1, 1, 20)
    discs = [Disc(float(x), float(y), float(r)) for x, y, r in zip(xs, ys, rng.uniform(3, 15, 20), strict=True)]
    line = np.array([[0.0, 400.0], [1000.0, 400.0]])
    boxes = place_labels(discs[:8], [SIZE] * 8, AREA, discs, [line])
    assert all(inside(b) for b in boxes)
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    assert not any(covers(b, d.x, d.y, d.radius) for b, d in product(boxes, discs))
    assert not any(b.bottom <= 400 <= b.bottom + b.height for b in boxes)


def test_points_in_one_place() -> None:
    discs = [Disc(980.0, 490.0, 8.0)] * 3
    boxes = place_labels(discs, [SIZE] * 3, AREA, discs)
    assert all(inside(b) for b in boxes)
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))


def test_where_there_is_no_room() -> None:
    small = Box(0.0, 0.0, 100.0, 10.0)
    boxes = place_labels([Disc(5.0, 5.0, 2.0)] * 2, [SIZE] * 2, small)
    assert [(b.left, b.bottom) for b in boxes] == [(0.0, 0.0)] * 2
    assert place_labels([], [], AREA) == []

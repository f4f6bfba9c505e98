"""Features of plans: as many for every kernel, each plan's by itself, fast, and telling the loops apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.machines import SERVER
from tests.support.yardstick import least_seconds
from tests.tune.landscapes import MatmulSpace, random_points
from tests.tune.schedules import FAMILIES

from weft.loop import parse_program
from weft.tune.features import (
    LEVEL_COLUMNS,
    LEVELS,
    Features,
    Floats,
    Ints,
    NestBatch,
    feature_names,
    features_of,
    level_features,
    loop_features,
    nests_of_programs,
)

SPACE = MatmulSpace()
SCALAR = """def f(x: f32[1], y: f32[1]):
    with block("y"):
        y[0] = x[0]
"""


def points_of(seed: int, n: int) -> Ints:
    return random_points(SPACE.sizes, np.random.default_rng(seed), n)


def column(features: Floats, name: str) -> Floats:
    return features[:, feature_names().index(name)]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_kernel_has_as_many_features(family: str) -> None:
    batch = nests_of_programs(list(FAMILIES[family]()))
    made = loop_features(batch, SERVER)
    assert made.shape == (len(batch), len(feature_names()))
    assert made.dtype == np.float32
    assert np.isfinite(made).all()
    assert level_features(batch, SERVER).shape == (len(batch), LEVELS, len(LEVEL_COLUMNS))


@given(st.integers(0, 10_000), st.integers(1, 20))
def test_a_plan_s_features_are_its_own(seed: int, n: int) -> None:
    """Neither other plans nor levels that do nothing change them."""
    points = points_of(seed, n)
    together = loop_features(SPACE.nests(points), SERVER)
    assert np.array_equal(together[:1], loop_features(SPACE.nests(points[:1]), SERVER))
    assert np.array_equal(together, loop_features(with_idle_levels(SPACE.nests(points)), SERVER))


def with_idle_levels(batch: NestBatch) -> NestBatch:
    """Returns the same nests with a level that a plan lacks after the third, and one of a single iteration at the end."""
    return replace(
        batch,
        axis=np.insert(batch.axis, [3, batch.axis.shape[1]], [-1, 0], axis=1),
        extent=np.insert(batch.extent, [3, batch.extent.shape[1]], [7, 1], axis=1),
        step=np.insert(batch.step, [3, batch.step.shape[1]], [5, 1], axis=1),
        kind=np.insert(batch.kind, [3, batch.kind.shape[1]], [1, 2], axis=1),
    )


def test_buffers_stand_by_role_and_size() -> None:
    batch = SPACE.nests(points_of(1, 50))
    swapped = replace(batch, accesses=(*batch.accesses[:2], batch.accesses[3], batch.accesses[2]))
    larger = replace(batch, accesses=(*batch.accesses[:3], replace(batch.accesses[3], shape=(1024, 512))))
    larger_first = replace(larger, accesses=(*larger.accesses[:2], larger.accesses[3], larger.accesses[2]))
    assert not np.array_equal(loop_features(batch, SERVER), loop_features(swapped, SERVER)), (
        "equal sizes: as they stand"
    )
    assert np.array_equal(loop_features(larger, SERVER), loop_features(larger_first, SERVER))


def test_the_register_tile_is_told() -> None:
    points = np.zeros((2, 8), np.int64)
    points[0, :2], points[1, :2] = (4, 1), (7, 5)  # 6 x 16 and 16 x 64
    made = loop_features(SPACE.nests(points), SERVER)
    assert column(made, "tile.sums").tolist() == pytest.approx([np.log2(6), np.log2(64)])
    assert column(made, "tile.spilled")[0] == 0 < column(made, "tile.spilled")[1]
    assert column(made, "tile.operands_of_arithmetic")[0] == pytest.approx((6 + 1) / 6)
    assert column(made, "level0.vectorized").tolist() == [1, 1]
    assert column(made, "level1.unrolled").tolist() == [1, 1]
    assert column(made, "tile.unfilled")[0] == pytest.approx(1 - 512 / 516)
    assert (column(made, "tile.efficiency") <= 0).all()


def test_decisions_have_columns_by_their_names() -> None:
    batch = SPACE.nests(points_of(2, 20))
    first = len(feature_names()) - 16
    made = loop_features(batch, SERVER)[:, first:]
    assert np.array_equal(made.sum(axis=1), batch.decisions[:, 0])
    more = replace(
        batch,
        decisions=np.concatenate([np.full((20, 1), 3, np.float32), batch.decisions], axis=1),
        decision_names=("prefetch", "deep_first"),
    )
    assert np.array_equal(loop_features(more, SERVER)[:, first:].sum(axis=1), batch.decisions[:, 0] + 2)


def test_rows_are_taken_and_joined() -> None:
    made = features_of(SPACE.nests(points_of(3, 30)), SERVER)
    parts = [made.take(np.arange(10)), made.take(np.arange(10, 30))]
    joined = Features.joined(parts)
    assert np.array_equal(joined.flat, made.flat)
    assert np.array_equal(joined.levels, made.levels)
    assert np.array_equal(joined.cycles, made.cycles)
    assert len(parts[1]) == 20


def test_a_block_without_loops_has_features() -> None:
    batch = nests_of_programs([parse_program(SCALAR)])
    assert batch.axis.shape == (1, 0)
    assert np.isfinite(loop_features(batch, SERVER)).all()


@pytest.mark.timed
def test_features_of_1000_plans_take_50_ms() -> None:
    batch = SPACE.nests(points_of(4, 1000))
    assert least_seconds(lambda: loop_features(batch, SERVER), 0.050) < 0.050

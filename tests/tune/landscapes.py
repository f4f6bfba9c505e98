"""Spaces of tile sizes whose scores are known formulas, so that searches and models are compared in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from tests.support.machines import SERVER

from weft.loop import LoopKind
from weft.tune.features import KINDS, Doubles, Ints, NestAccess, NestBatch, features_of

SERIAL, PARALLEL, UNROLLED, VECTORIZED = (
    KINDS.index(k) for k in (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED, LoopKind.VECTORIZED)
)
LEVEL_KINDS = (PARALLEL, SERIAL, SERIAL, SERIAL, SERIAL, SERIAL, UNROLLED, VECTORIZED)


@dataclass(frozen=True)
class MatmulSpace:
    """Tilings of a product of an m x k and a k x n matrix in ten levels; a point has the index of each of eight sizes."""

    m: int = 512
    n: int = 512
    k: int = 512
    inner: tuple[tuple[int, ...], ...] = field(
        default=(
            (1, 2, 3, 4, 6, 8, 12, 16),
            (8, 16, 24, 32, 48, 64),
            *[(1, 2, 4, 8)] * 2,
            (1, 4, 16, 64),
            (1, 4, 16),
            (1, 4),
        )
    )

    @property
    def sizes(self) -> tuple[int, ...]:
        return (*map(len, self.inner), 2)

    def nests(self, points: Ints) -> NestBatch:
        """The nest of each point: rows, columns, blocks of both and of the depth, twice, and the order of the depth's loop."""
        r, c, rr, cc, d, rrr, ccc = (np.asarray(sizes)[points[:, i]] for i, sizes in enumerate(self.inner))
        row, column = r * rr, c * cc
        ones = np.ones_like(r)
        deep_first = points[:, 7] == 1
        levels = [
            (0, -(-self.m // (row * rrr)), row * rrr, PARALLEL),
            (1, -(-self.n // (column * ccc)), column * ccc, SERIAL),
            (2, -(-self.k // d), d, SERIAL),
            (0, rrr, row, SERIAL),
            (1, ccc, column, SERIAL),
            (0, rr, r, SERIAL),
            (1, cc, c, SERIAL),
            (2, d, ones, SERIAL),
            (0, r, ones, UNROLLED),
            (1, c, ones, VECTORIZED),
        ]
        axis = np.stack([np.full(len(r), a) for a, *_ in levels], axis=1)
        extent, step = (np.stack([x[i] for x in levels], axis=1) for i in (1, 2))
        kind = np.stack([np.full(len(r), x[3]) for x in levels], axis=1)
        for table in (axis, extent, step):  # the depth's blocks outside of the columns'
            table[deep_first, 1:3] = table[deep_first, 2:0:-1]
        return NestBatch(
            (
                NestAccess("c", (self.m, self.n), 4, np.array([[1, 0, 0], [0, 1, 0]]), True, True),
                NestAccess("c", (self.m, self.n), 4, np.array([[1, 0, 0], [0, 1, 0]]), False, True),
                NestAccess("a", (self.m, self.k), 4, np.array([[1, 0, 0], [0, 0, 1]])),
                NestAccess("b", (self.k, self.n), 4, np.array([[0, 0, 1], [0, 1, 0]])),
            ),
            (False, False, True),
            1.0,
            axis,
            extent,
            step,
            kind,
            points[:, 7:].astype(np.float32),
            ("deep_first",),
            (self.m, self.n, self.k),
        )


def random_points(sizes: tuple[int, ...], rng: np.random.Generator, n: int) -> Ints:
    return np.stack([rng.integers(0, size, n) for size in sizes], axis=1)


def measured_scores(space: MatmulSpace, points: Ints, *, seed: int = 0, noise: float = 0.0) -> Doubles:
    """Returns the throughput of each point on a made-up machine: one with smaller, slower caches that dislikes some strides."""
    machine = SERVER.having(l2=256 << 10, l3=1 << 20, l2_speed=20.0, l3_speed=5.0, loads_per_cycle=1)
    batch = space.nests(points)
    cycles = features_of(batch, machine).cycles
    row_bytes = np.asarray(space.inner[1])[points[:, 1]] * np.asarray(space.inner[3])[points[:, 3]] * 4
    cycles = cycles * np.where(row_bytes % 1024 == 0, 1.3, 1.0) * np.where(batch.extent[:, 0] % 2 == 1, 1.15, 1.0)
    cycles = cycles * (1 + 0.1 * ((points[:, 0] + points[:, 4]) % 3))
    return (
        space.m * space.n * space.k / cycles * np.exp(noise * np.random.default_rng(seed).standard_normal(len(points)))
    )

"""Features of plans: a row of as many numbers for a plan of any kernel, so that a model learns across kernels.

Beside those of the levels there are the register tile's, the traffic of each cache, the analytical estimate, and the decisions
that loops do not show, by feature hashing (Weinberger et al., "Feature hashing for large scale multitask learning", 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import numpy as np

from weft.cost import fma_cycles
from weft.loop import LoopKind
from weft.targets import Target
from weft.tune.features.estimate import CacheTraffic, cache_traffic, cycles_of
from weft.tune.features.geometry import Doubles, NestGeometry, added, at_level
from weft.tune.features.level_features import LEVEL_COLUMNS, LEVELS, SLOTS, level_table, reuse, slots_of
from weft.tune.features.nest_batch import Floats, Ints, NestBatch
from weft.tune.features.straight_code import StraightCode

CACHES: Final = ("l1", "l2", "l3")
DECISIONS: Final = 16
"""The columns that decisions share."""

TILE_COLUMNS: Final = (
    "vector_length",
    "vectors",
    "copies",
    "sums",
    "sums_of_registers",
    "spilled",
    "loads_of_arithmetic",
    "operands_of_arithmetic",
    "stores_of_arithmetic",
    "latency_of_arithmetic",
    "unfilled",
    "instructions",
    "trips",
    "parallel",
    "cycles",
    "efficiency",
)
CACHE_COLUMNS: Final = ("intensity", "outside", *[f"{slot}.reuse" for slot in SLOTS])


@dataclass(frozen=True, eq=False)
class Features:
    """The features of n plans: a row each, a row for each of their levels, and the cycles estimated for each."""

    flat: Floats
    levels: Floats
    cycles: Doubles

    def __len__(self) -> int:
        return len(self.flat)

    def take(self, rows: Ints) -> Features:
        """Returns the features of some of the plans."""
        return Features(self.flat[rows], self.levels[rows], self.cycles[rows])

    @staticmethod
    def joined(parts: Sequence[Features]) -> Features:
        """Returns the features of the plans of all *parts*."""
        return Features(
            np.concatenate([p.flat for p in parts]),
            np.concatenate([p.levels for p in parts]),
            np.concatenate([p.cycles for p in parts]),
        )


def features_of(batch: NestBatch, target: Target) -> Features:
    """Returns all features of the plans of *batch* on *target*."""
    nest = NestGeometry(batch, target.caches.line)
    code = StraightCode(nest, target)
    caches = (
        cache_traffic(nest, target.caches.l1),
        cache_traffic(nest, target.caches.l2),
        cache_traffic(nest, target.caches.l3),
    )
    cycles = cycles_of(code, caches)
    levels = level_table(nest, target)
    columns = [*_tile_columns(code, cycles), *[x for c in caches for x in _cache_columns(nest, c)]]
    flat = [
        levels.reshape(len(batch), LEVELS * len(LEVEL_COLUMNS)),
        np.stack(columns, axis=1),
        _decision_columns(batch),
    ]
    return Features(np.concatenate(flat, axis=1).astype(np.float32), levels, cycles)


def with_decisions(features: Features, batch: NestBatch) -> Features:
    """Returns the features of plans that have the loops of one, whose *features* are given, and the decisions of *batch*."""
    made = features.take(np.zeros(len(batch), np.int64))
    made.flat[:, -DECISIONS:] = _decision_columns(batch)
    return made


def loop_features(batch: NestBatch, target: Target) -> Floats:
    """Returns a row of features for each plan of *batch*; `feature_names` names the columns."""
    return features_of(batch, target).flat


def level_features(batch: NestBatch, target: Target) -> Floats:
    """Returns the features of each level, `(n, LEVELS, len(LEVEL_COLUMNS))`, the innermost level first: for recurrent models."""
    return level_table(NestGeometry(batch, target.caches.line), target)


def feature_names() -> tuple[str, ...]:
    """Returns the names of the columns of `loop_features`, the same for every kernel and machine."""
    by_level = [f"level{level}.{name}" for level in range(LEVELS) for name in LEVEL_COLUMNS]
    by_cache = [f"{cache}.{name}" for cache in CACHES for name in CACHE_COLUMNS]
    return (*by_level, *[f"tile.{c}" for c in TILE_COLUMNS], *by_cache, *[f"decision{i}" for i in range(DECISIONS)])


def _tile_columns(code: StraightCode, cycles: Doubles) -> list[Doubles]:
    nest, arithmetic = code.nest, np.maximum(code.arithmetic, np.finfo(np.float32).tiny)
    parallel = np.where(nest.is_kind(LoopKind.PARALLEL), nest.extent, 1.0).prod(axis=1)
    least = nest.inside[:, 0] * code.filled * nest.batch.operations / code.lanes * fma_cycles(1.0, code.target)
    return [
        np.log2(code.length),
        np.log2(code.vectors),
        np.log2(code.copies),
        np.log2(code.sums),
        code.sums / code.target.isa.vector_registers,
        np.log2(1 + code.spilled),
        code.loads / arithmetic,
        code.operands / arithmetic,
        code.stores / arithmetic,
        code.latency / arithmetic,
        1 - code.filled,
        np.log2(1 + code.arithmetic + code.loads + code.stores),
        np.log2(code.trips),
        np.log2(parallel),
        np.log2(cycles),
        np.log2(least / cycles),
    ]


def _cache_columns(nest: NestGeometry, cache: CacheTraffic) -> list[Doubles]:
    """Returns the columns of a cache's traffic: the context relation features of Chen et al., at the capacity of the cache."""

    def at(table: Doubles) -> Doubles:
        return at_level(table, cache.outside)

    operations = nest.inside[:, 0] * nest.batch.operations
    iterations = at(nest.inside)
    columns = [np.log2(operations / np.maximum(1.0, cache.nbytes)), np.log2(at(nest.outside))]
    for slot in slots_of(nest):
        touched = added([at(a.nbytes) for a in slot], iterations.shape)
        columns.append(reuse(iterations, touched, slot) if slot else np.zeros(len(iterations)))
    return columns


def _decision_columns(batch: NestBatch) -> Floats:
    """Returns the decisions in as many columns for every kernel: each is added to that of its name's hash."""
    made = np.zeros((len(batch), DECISIONS), np.float32)
    for i, name in enumerate(batch.decision_names):
        x = batch.decisions[:, i]
        made[:, crc32(name.encode()) % DECISIONS] += np.sign(x) * np.log2(1 + np.abs(x))
    return made

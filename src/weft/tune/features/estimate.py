"""The cycles of many plans by the analytical model of `cost`: nothing is trained, nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.cost import (
    ENTRY_CYCLES,
    LOOP_CYCLES,
    SPILL_CYCLES,
    Demand,
    fma_cycles,
    l2_cycles,
    l3_cycles,
    load_cycles,
    memory_cycles,
)
from weft.tune.features.geometry import AccessGeometry, Bools, Doubles, NestGeometry, added, at_level
from weft.tune.features.nest_batch import Ints
from weft.tune.features.straight_code import StraightCode


@dataclass(frozen=True, eq=False)
class CacheTraffic:
    """The traffic of one level of cache for n nests: its levels from `outside[i]` on fit it, and `nbytes[i]` are brought into it.

    It `holds[i]` all that the nest touches.
    """

    outside: Ints
    nbytes: Doubles
    holds: Bools


def cache_traffic(nest: NestGeometry, capacity: int) -> CacheTraffic:
    """Returns the traffic of a cache of *capacity*: the outermost levels whose data fit tell how often data is brought anew.

    After Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016).
    """
    touched = added([a.nbytes for a in nest.in_memory], nest.inside.shape)
    fits = touched <= capacity
    outside = np.where(fits.any(axis=1), np.argmax(fits, axis=1), nest.extent.shape[1])
    traffic = added([_traffic(nest, a, outside) for a in nest.in_memory], outside.shape)
    return CacheTraffic(outside, traffic, touched[:, 0] <= capacity)


def _traffic(nest: NestGeometry, a: AccessGeometry, outside: Ints) -> Doubles:
    """Returns the bytes that an access brings into a cache that holds the data of the levels from *outside* on.

    The loop around these brings in nothing for an access that does not depend on it; loops further out bring in all again.
    """
    level = np.arange(1, nest.extent.shape[1] + 1)
    moved = np.maximum.accumulate(np.where(a.uses, level, 0), axis=1)
    moved = np.concatenate([np.zeros((len(moved), 1), np.int64), moved], axis=1)
    times = at_level(nest.outside, at_level(moved, outside))
    held = at_level(a.nbytes, outside)
    return times * held * (2.0 if a.access.is_store else 1.0)


def cycles_of(code: StraightCode, caches: tuple[CacheTraffic, CacheTraffic, CacheTraffic]) -> Doubles:
    """Returns the cycles of each plan on one core, as `cost.cost_of` estimates them for a scheduled program."""
    target, core = code.target, code.target.core
    count = code.arithmetic + code.loads + code.stores
    issue = count / np.where(count < core.decoded_instructions, core.issue_width, core.decode_rate)
    arithmetic = code.arithmetic * fma_cycles(1.0, target)
    loads = code.loads * load_cycles(1.0, target)
    l2, l3, memory = [
        np.where(c.holds, 0.0, c.nbytes * per_byte(1.0, target))
        for c, per_byte in zip(caches, (l2_cycles, l3_cycles, memory_cycles), strict=True)
    ]
    step = np.stack([arithmetic, loads, code.stores, issue, code.latency])
    demands = np.concatenate([step * (code.entries * code.trips), [l2, np.maximum(l3, memory)]]).T
    overhead = code.entries * (code.trips * (LOOP_CYCLES + code.spilled * SPILL_CYCLES) + ENTRY_CYCLES)
    return np.asarray([Demand(*row).cycles for row in demands.tolist()], np.float64) + overhead

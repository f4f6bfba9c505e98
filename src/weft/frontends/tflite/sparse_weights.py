"""Weights of which a file has those that are not zero: levels of dimensions, each dense, or compressed rows (TACO's formats).

Levels are the tensor's dimensions in some order, of which some are cut into blocks, whose insides are levels of their own behind
them. See Kjolstad et al., "The tensor algebra compiler", 2017.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.frontends.tflite.flatbuffer import Damaged, Table
from weft.graph import Array

_COMPRESSED: Final = 1
_VECTORS: Final = {1: "i32", 2: "u16", 3: "u8"}
"""Kinds of numbers by the kind of a vector of indices."""

_MOST_ZEROS: Final = 1 << 12
"""Zeros for each element that the file has, at most; a matrix is hardly sparser than this."""


def dense(table: Table, values: Array, shape: Sequence[int]) -> Array:
    """Returns all elements of a tensor of *shape*, of which the file has *values*; raises `Damaged` where they do not fit."""
    order, blocked = ([int(v) for v in table.numbers(k, "i32")] for k in range(2))
    levels, count, n = list(table.tables(2)), math.prod(shape), len(shape)
    fits = sorted(order) == list(range(n + len(blocked))) and len(levels) == len(order)
    if not fits or len(set(blocked)) != len(blocked) or not all(0 <= d < n for d in blocked):
        raise Damaged
    if count > _MOST_ZEROS * max(values.size, _MOST_ZEROS):
        raise Damaged
    places = _places(order, levels, values.size, count)
    blocks = {d: int(level.number(1, "i32")) for d, level in zip(order, levels, strict=True) if d >= n}
    whole = [places[d] for d in range(n)]
    for k, d in enumerate(blocked):
        whole[d] = whole[d] * blocks[n + k] + places[n + k]
    if any((w < 0).any() or (w >= s).any() for w, s in zip(whole, shape, strict=True)):
        raise Damaged
    made: Array = np.zeros(shape, values.dtype)
    made[tuple(whole)] = values
    return made


def _places(order: Sequence[int], levels: Sequence[Table], held: int, most: int) -> dict[int, Array]:
    """Returns the indices of the elements *held* along each dimension; *most* are those of the tensor with its zeros."""
    places: dict[int, Array] = {}
    entries = 1
    for dimension, level in zip(order, levels, strict=True):
        parent, index = _entries(level, entries, most)
        places = {d: p[parent] for d, p in places.items()}
        places[dimension] = index
        entries = len(parent)
    if entries != held:
        raise Damaged
    return places


def _entries(level: Table, parents: int, most: int) -> tuple[Array, Array]:
    """Returns for each entry of a level the one of the level before, and its index along the dimension."""
    if level.number(0, "i8") != _COMPRESSED:
        size = int(level.number(1, "i32"))
        if not 0 <= size * parents <= most:
            raise Damaged
        return np.repeat(np.arange(parents), size), np.tile(np.arange(size), parents)
    segments, indices = (_vector(level, slot) for slot in (2, 4))
    lengths = np.diff(segments)
    if len(segments) != parents + 1 or (lengths < 0).any() or segments[0] != 0 or segments[-1] != len(indices):
        raise Damaged
    return np.repeat(np.arange(parents), lengths), indices


def _vector(level: Table, slot: int) -> Any:
    """Returns a vector of indices; its kind stands before it."""
    kind, held = _VECTORS.get(level.number(slot, "u8")), level.table(slot + 1)
    if kind is None or held is None:
        raise Damaged
    return held.numbers(0, kind).astype(np.int64)

"""Strings and integers as numbers of buckets, by hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.support.dtypes import i64, u64

CROSS_KEY: Final = 0xDECAFCAFFE
"""The hash that TensorFlow begins crosses with, unless a model says another."""

_FACTOR: Final = 0xC6A4A7935BD1E995
_SHIFT: Final = 47


def hashed(b: Builder, pool: Operand, ids: Operand, buckets: int, key: tuple[int, int] | None = None) -> Operand:
    """Returns the buckets, numbered from 0 in int64, of strings: by SipHash with a *key*, or by fingerprints."""
    return _bucket(b, b.add("string_hash", ids, pool, key=key), buckets)


def crossed(b: Builder, hashes: Sequence[Operand], buckets: int, key: int = CROSS_KEY) -> Operand:
    """Returns the buckets of crosses of features, each given by the hashes of its elements (u64)."""
    made: Operand = _number(key)
    for h in hashes:
        made = _joined(b, made, h)
    return _bucket(b, made, buckets)


def _bucket(b: Builder, x: Operand, buckets: int) -> Operand:
    return b.cast(b.add("floor_mod", x, _number(buckets)), i64)


def _joined(b: Builder, x: Operand, y: Operand) -> Operand:
    """Returns the fingerprint of two, in which products wrap around (Appleby's MurmurHash2 for 64 bits)."""
    factor = _number(_FACTOR)
    made = b.add("bit_xor", x, factor)
    made = b.add("bit_xor", made, b.add("mul", _mixed(b, b.add("mul", y, factor)), factor))
    made = b.add("mul", _mixed(b, b.add("mul", made, factor)), factor)
    return _mixed(b, made)


def _mixed(b: Builder, x: Operand) -> Operand:
    return b.add("bit_xor", x, b.add("shift_right", x, _number(_SHIFT)))


def _number(value: int) -> CompileTimeConstant:
    return CompileTimeConstant(np.asarray(value, u64.numpy))

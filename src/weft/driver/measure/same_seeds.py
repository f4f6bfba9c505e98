"""Runs of a model that draws random numbers, made comparable: each takes its seeds from the same sequence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weft.native import _rt

SEED: Final = 0
"""The seed of random inputs, and of random numbers drawn in calls."""


@contextmanager
def same_seeds() -> Iterator[None]:
    """Begins the process's sequence of seeds anew in the block; after it, the sequence goes on where it was."""
    before = _rt.random_seed()
    _rt.set_random_seed(SEED)
    try:
        yield
    finally:
        _rt.set_random_seed(before)

"""The seeded inputs of the benchmark's models: NumPy alone, for every engine's process needs them."""

import zlib
from typing import Any

import numpy as np

Entry = dict[str, Any]


def make_inputs(entry: Entry, variant: int = 0) -> dict[str, np.ndarray]:
    """Return a manifest entry's inputs, name -> array, seeded by the model's and the input's name, and by *variant*."""
    arrays = {}
    for spec in entry["inputs"]:
        rng = np.random.default_rng(zlib.crc32((entry["name"] + "/" + spec["name"]).encode()) + variant)
        if spec["dtype"] == "int64":
            low, high = spec.get("range", [0, 10])
            arrays[spec["name"]] = rng.integers(low, high, size=spec["shape"], dtype=np.int64)
        else:
            scale = spec.get("scale", 1.0)
            arrays[spec["name"]] = (rng.standard_normal(spec["shape"]) * scale).astype(np.float32)
    return arrays


def seed_of(name: str) -> int:
    """Return the seed of a model's weights."""
    return zlib.crc32(name.encode()) & 0x7FFFFFFF

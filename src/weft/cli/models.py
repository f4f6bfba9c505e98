"""Getting from a path on the command line to a model in memory, and inputs for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from weft.cli.console import Stages, is_artifact
from weft.driver.compile import compile
from weft.runtime.model import Model, load
from weft.runtime.package import TensorSpec
from weft.support.errors import InputError

SYMBOLIC_SIZE = 1
"""What `--random` takes for a size that the model leaves open."""


@dataclass(frozen=True)
class Opened:
    """A model ready to run, and how long that took."""

    model: Model
    seconds: float


def open_model(
    path: Path, target: str, threads: int | None, cache: bool, shapes: dict[str, int], progress: Stages
) -> Opened:
    """Loads a compiled model, or compiles a model file."""
    start = perf_counter()
    if is_artifact(path):
        model = load(path, threads=threads)
    else:
        model = compile(str(path), target, threads, cache=cache, shapes=shapes, progress=progress)
    return Opened(model, perf_counter() - start)


def random_inputs(specs: Sequence[TensorSpec], seed: int = 0) -> dict[str, np.ndarray]:
    """Returns seeded inputs that fit *specs*: normal floats, small whole numbers; open sizes are `SYMBOLIC_SIZE`."""
    rng = np.random.default_rng(seed)
    return {s.name: _random(s, rng) for s in specs}


def _random(spec: TensorSpec, rng: np.random.Generator) -> np.ndarray:
    shape = [d if isinstance(d, int) else SYMBOLIC_SIZE for d in spec.shape]
    if spec.dtype.is_float:
        return rng.standard_normal(shape).astype(spec.dtype.numpy)
    return rng.integers(0, 2, shape).astype(spec.dtype.numpy)


def read_inputs(given: Sequence[str]) -> dict[str, np.ndarray]:
    """Reads `name=file.npy` options; raises `InputError` for a file that is none."""
    arrays: dict[str, np.ndarray] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(f"--input {text!r} is not of the form NAME=FILE.npy")
        try:
            arrays[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as e:
            raise InputError(f"--input {name}: {file} can't be read: {e}", hint="save it with numpy.save") from None
    return arrays

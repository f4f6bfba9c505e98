"""How long each kernel of a model takes on its device: the launches of a call are made again, by the device's clock."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Final

import numpy as np

from weft.driver.build import Compilation
from weft.driver.device.inline_kernels import kernel_names
from weft.driver.measure.profile import check_profiled
from weft.loop import external_module, parse_program
from weft.runtime import Model
from weft.support.errors import InputError

FEWEST_ROUNDS: Final = 3


def kernel_seconds(made: Compilation, inputs: Mapping[str, np.ndarray], budget: float) -> dict[str, float]:
    """Returns the seconds that each kernel takes of a run, by the key of its group: medians over *budget* seconds.

    Raises `InputError` for a model whose kernels can't be timed one by one (`check_profiled`).
    """
    check_profiled(made)
    model = Model(made.package)
    device = model.device
    if device is None:
        raise InputError("the model runs on the processor", hint="profile it as such")
    with device.noting() as launches:
        model(**inputs)
    rounds: list[list[float]] = []
    begin = perf_counter()
    while len(rounds) < FEWEST_ROUNDS or perf_counter() < begin + budget:
        rounds.append([device.repeat([launch]) for launch in launches])
    names = [f.name for f in made.host.functions if external_module(f) is not None]
    group = _groups(made)
    taken = dict.fromkeys(made.kernels, 0.0)
    for launch, seconds in zip(launches, zip(*rounds, strict=True), strict=True):
        taken[group[names[launch.kernel]]] += median(seconds)
    return taken


def _groups(made: Compilation) -> dict[str, str]:
    """Returns the keys of groups by the names that their grids have in the host program."""
    return {
        name: key
        for key, k in made.kernels.items()
        for _, name in kernel_names(k.name, k.symbol, parse_program(k.flat))
    }

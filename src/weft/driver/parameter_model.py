"""Models with parameters, whose elements change between calls, as by training: packed forms of them are computed again.

    model = compile_parameters(graph, threads=1)
    graph's parameter `w`.bind(array)
    model.refresh()
    model.run([x, *[arrays[name] for name in model.bound]])

A parameter is an input where a kernel reads it as it lies. Where kernels read a form that passes made of it (packed panels,
channels in blocks, filters transformed by Winograd's method), that is a constant, computed when compiling and by `refresh`; so a
call with the same parameters as the last does not pay for it. Splitting a program by when its inputs change is a binding-time
analysis (Jones, Gomard, Sestoft, "Partial Evaluation and Automatic Program Generation", 1993, chapter 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.driver.build import Compilation, build
from weft.driver.cache.code_cache import default_cache
from weft.driver.calibrate import target_here
from weft.driver.host.entry import place_constants
from weft.driver.options import CompileOptions
from weft.driver.python_settings import collecting_new_objects, tuned_for_compiling
from weft.graph import Graph
from weft.native import _rt
from weft.runtime.arrays import Array
from weft.runtime.model import Model


class ParameterModel:
    """A model, and the constants in it that are made of parameters.

    `bound` are the names of the parameters that are inputs, the last ones of the model. `refresh` and `run` must not be called at
    the same time.
    """

    def __init__(self, made: Compilation, threads: int | None) -> None:
        self._model = Model(made.package, threads=threads)
        self.has_late_outputs = self._model.has_late_outputs
        given = len(made.source.inputs)
        self.bound = tuple([spec.name for spec in self._model.inputs[given:]])
        constants = self._model.package.constants
        assert isinstance(constants, _rt.Block)  # as a loaded model has them
        block = np.frombuffer(memoryview(constants), np.uint8)
        places = place_constants(made.fused).offsets
        self._made = [
            (c, block[places[c] : places[c] + c.nbytes].view(c.dtype.numpy).reshape(c.extents))
            for c in made.fused.constants
            if not c.is_fixed
        ]

    def run(self, inputs: Sequence[object]) -> list[Array]:
        """Runs the model, as `Model.run` does."""
        return self._model.run(inputs)

    def run_in(self, library: _rt.Exchange, inputs: Sequence[object]) -> list[Any]:
        """Runs the model, as `Model.run_in` does."""
        return self._model.run_in(library, inputs)

    def refresh(self) -> None:
        """Computes anew all constants that are made of parameters."""
        for constant, place in self._made:
            constant.write(place)


def compile_parameters(graph: Graph, options: CompileOptions, threads: int | None = None) -> ParameterModel:
    """Compiles *graph*, which has parameters, for this machine's processor.

    Raises `ModelError` for a graph that can't be compiled.
    """
    cache = default_cache()
    with tuned_for_compiling(), collecting_new_objects():
        made = build(graph, target_here("cpu", None, cache), options, None, cache)
        return ParameterModel(made, threads)

"""Host programs written by hand, compiled and replayed, as models of vectors of i64."""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.launch import LaunchCode, write_launch
from weft.driver.build import Compilation
from weft.driver.host_model import compile_host
from weft.loop import Program
from weft.runtime import Model, TensorSpec
from weft.support.dtypes import i64
from weft.targets import Target


def launch_code(made: Compilation) -> LaunchCode:
    """Returns the bytes of a model's host program."""
    return write_launch(made.host, len(made.package.inputs), len(made.package.outputs))


class ByHand:
    """A host program of one input and one output: `compiled`, and `replayed`."""

    def __init__(self, program: Program, kernels: Mapping[str, Program], target: Target | None = None) -> None:
        specs = [TensorSpec("x", i64, ("n",))], [TensorSpec("y", i64, ("m",))]
        self.code = write_launch(program, 1, 1)
        self.compiled, self.replayed = [
            Model(compile_host(program, kernels, *specs, target=target, replay=replay), threads=1)
            for replay in (False, True)
        ]

"""Host programs replayed from bytes, and compiled, behind the runtime's calls; each kernel is an image, a module of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from weft.codegen import Module, compile_program, link_here
from weft.codegen.launch import LaunchCode, write_launch
from weft.driver.build import Compilation
from weft.loop import Program, definitions
from weft.lower import expand_copies
from weft.native import _rt
from weft.support.dtypes import DType
from weft.targets import Target, host

Array = np.ndarray[Any, Any]
Specs: TypeAlias = Sequence[tuple[DType, int]]
"""The types and the ranks of inputs or outputs."""


def launch_code(made: Compilation) -> LaunchCode:
    """Returns the bytes of a model's host program."""
    return write_launch(made.host, len(made.package.inputs), len(made.package.outputs))


def callees(code: LaunchCode, modules: Mapping[str, Module], target: Target) -> list[tuple[_rt.Image, int]]:
    """Returns where the callees of a host program are, each in an image of its own."""
    images = {name: link_here([m], target) for name, m in modules.items()}
    return [(_rt.Image(images[name].code), images[name].symbols[name]) for _, name in code.callees]


def replayed(made: Compilation, threads: int = 1) -> _rt.Model:
    """Returns a compiled model that replays its host program."""
    code = launch_code(made)
    modules = {k.name: k.module for k in made.kernels.values()}
    package = made.package
    specs = [[(s.dtype.code, len(s.shape)) for s in given] for given in (package.inputs, package.outputs)]
    found = callees(code, modules, made.target)
    return _rt.Model(code.data, found, package.constants, specs[0], specs[1], threads=threads)


class ByHand:
    """A host program written by hand, with its kernels: `compiled` by LLVM, and `replayed`."""

    def __init__(
        self, program: Program, kernels: Mapping[str, Program], inputs: Specs, outputs: Specs, constants: bytes = b""
    ) -> None:
        target = host()
        modules = {name: compile_program(p, target) for name, p in kernels.items()}
        image = link_here([compile_program(expand_copies(definitions(program)), target), *modules.values()], target)
        specs = [[(t.code, rank) for t, rank in given] for given in (inputs, outputs)]
        plan, main = image.symbols["weft_plan"], image.symbols["weft_main"]
        mapped = _rt.Image(image.code, image.readonly)
        self.compiled = _rt.Model(mapped, plan, main, constants, specs[0], specs[1], threads=1)
        self.code = write_launch(program, len(inputs), len(outputs))
        found = callees(self.code, modules, target)
        self.replayed = _rt.Model(self.code.data, found, constants, specs[0], specs[1], threads=1)

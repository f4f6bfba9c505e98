"""The package of a model whose kernels run on a device: its host program as bytes, and the kernels' source."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from weft.codegen import SourceCode, link
from weft.codegen.launch import write_launch
from weft.driver.device.inline_kernels import inline_kernels, kernel_names
from weft.driver.device.place_on_device import place_on_device
from weft.driver.kernel import Kernel
from weft.loop import Program, parse_program
from weft.runtime import DeviceCode, Package, Replay
from weft.targets import Target


def device_host(
    host: Program, kernels: Mapping[str, Kernel], target: Target, states: Set[str] = frozenset()
) -> Program:
    """Returns the host program that launches the grids of *kernels*, by key, on the device of *target*.

    Of the tensors named *states*, such as `in2`, the memory is the device's.
    """
    flat = {k.name: parse_program(k.flat) for k in kernels.values()}
    return place_on_device(inline_kernels(host, flat), target, states)


def device_package(made: Package, host: Program, kernels: Mapping[str, Kernel], target: Target) -> Package:
    """Returns *made* with the host program of `device_host` as bytes, and the source of the kernels."""
    program = write_launch(host, len(made.inputs), len(made.outputs))
    modules = [
        replace(k.module, renamed=kernel_names(k.name, k.symbol, parse_program(k.flat))) for k in kernels.values()
    ]
    code = link(modules, target)
    assert isinstance(code, SourceCode)
    names = tuple([code.symbols[name] for _, name in program.callees])
    binaries = tuple([code.binaries[name] for _, name in program.callees if code.binaries])
    device = DeviceCode(code.language, code.text, names, binaries)
    replay = Replay(program.data, tuple([(None, 0) for _ in names]), device)
    return replace(made, asserts=dict(program.messages), replay=replay)

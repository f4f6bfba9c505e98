"""The package of a model whose kernels run on a device: its host program as bytes, and the kernels' source.

Kernels that the processor beside the device runs are an image; they are the last callees of the host program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from weft.codegen import Image, SourceCode, link
from weft.codegen.launch import write_launch
from weft.driver.device.inline_kernels import inline_kernels, kernel_names
from weft.driver.device.place_on_device import place_on_device
from weft.driver.kernel import Kernel
from weft.loop import Program, external_module, parse_program
from weft.native import _rt
from weft.runtime import DeviceCode, Package, ProcessorCode, Replay
from weft.targets import Target


def device_host(
    host: Program, kernels: Mapping[str, Kernel], target: Target, states: Set[str] = frozenset()
) -> Program:
    """Returns the host program that launches the grids of *kernels*, by key, on the device of *target*.

    Of the tensors named *states*, such as `in2`, the memory is the device's.
    """
    there = {f.name for f in host.functions if external_module(f) == target.name}
    flat = {k.name: parse_program(k.flat) for k in kernels.values() if k.name in there}
    return place_on_device(inline_kernels(host, flat), target.alone, states)


def device_package(made: Package, host: Program, kernels: Mapping[str, Kernel], target: Target) -> Package:
    """Returns *made* with the host program of `device_host` as bytes, the source of its kernels, and the processor's code."""
    program = write_launch(host, len(made.inputs), len(made.outputs))
    there = [name for module, name in program.callees if module == target.name]
    here = [name for module, name in program.callees if module != target.name]
    modules = [
        replace(k.module, renamed=kernel_names(k.name, k.symbol, parse_program(k.flat)))
        for k in kernels.values()
        if k.name not in here
    ]
    code = link(modules, target.alone)
    assert isinstance(code, SourceCode)
    names = tuple([code.symbols[name] for name in there])
    binaries = tuple([code.binaries[name] for name in there if code.binaries])
    device = DeviceCode(code.language, code.text, names, binaries)
    replay = Replay(program.data, tuple([(None, 0) for _ in names]), device)
    made = replace(made, asserts=dict(program.messages), replay=replay)
    by_name = {k.name: k for k in kernels.values()}
    return _with_processor(made, replay, [by_name[name] for name in here], target) if here else made


def _with_processor(made: Package, replay: Replay, kernels: Sequence[Kernel], target: Target) -> Package:
    """Returns *made* with the kernels that the processor of *target* runs, as an image."""
    assert target.processor is not None
    image = link([k.module for k in kernels], target.processor)
    assert isinstance(image, Image)
    offsets = tuple([image.symbols[k.name] for k in kernels])
    code = ProcessorCode(_rt.Image(image.code, image.readonly), image.readonly, offsets)
    return replace(
        made,
        asserts={**image.messages, **made.asserts},
        machine=target.processor.isa.machine,
        replay=replace(replay, callees=(*replay.callees, *code.callees), processor=code),
    )

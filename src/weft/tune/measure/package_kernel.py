"""The package of one kernel for a device, called with its inputs and outputs: how a candidate gets to where it is run.

@function(entry=("main", ("in0", "out0")))
def main(in0: f32[4096], out0: f32[64]):
    softmax_max(in0.at(0), out0.at(0))
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import FALLBACK_SIZE
from weft.driver.device.device_package import device_host, device_package
from weft.driver.kernel import Kernel
from weft.ir import ONE, ZERO, index
from weft.loop import NOTHING, Address, Buffer, Call, Entry, External, Function, Program, Store, seq
from weft.native import _rt
from weft.runtime import Package, TensorSpec
from weft.runtime.artifact import artifact_parts
from weft.support.dtypes import i64
from weft.targets import Target
from weft.tune.measure.kernel_arguments import element_count, written_buffers


def package_kernel(kernel: Kernel, loops: Function, target: Target) -> bytes:
    """Returns a saved model that calls *kernel*, made of *loops*, which takes no workspace.

    A symbolic size has the value that `KernelArguments` gives it.
    """
    written = written_buffers(loops)
    buffers = {p: Buffer(p.name, (index(element_count(p)),), p.dtype) for p in loops.params if isinstance(p, Buffer)}
    ins = [made for p, made in buffers.items() if p not in written]
    outs = [made for p, made in buffers.items() if p in written]
    arguments = [Address(buffers[p], (ZERO,)) if isinstance(p, Buffer) else index(FALLBACK_SIZE) for p in loops.params]
    words = (*[f"in{n}" for n in range(len(ins))], *[f"out{n}" for n in range(len(outs))])
    main = Function("main", (*ins, *outs), Call(kernel.name, tuple(arguments)), (Entry("main", words),))
    params = tuple([buffers[p] if isinstance(p, Buffer) else p for p in loops.params])
    declared = Function(kernel.name, params, NOTHING, (External(target.name),))
    host = device_host(Program((main, _plan(words, outs), declared)), {kernel.name: kernel}, target)
    made = Package(
        image=b"",
        plan=0,
        main=0,
        constants=_rt.Block(0),
        inputs=_specs(ins),
        outputs=_specs(outs),
        target=target.name,
        machine=target.isa.machine,
    )
    return b"".join(artifact_parts(device_package(made, host, {kernel.name: kernel}, target)))


def _plan(words: Sequence[str], outs: Sequence[Buffer]) -> Function:
    """Returns the function that tells the shapes of the outputs, and that a call needs no arena."""
    shapes = [Buffer(f"{word}_shape", (ONE,), i64) for word in words]
    needed = Buffer("arena_needed", (ONE,), i64)
    told = [Store(shape, (ZERO,), b.shape[0], None) for shape, b in zip(shapes[-len(outs) :], outs, strict=True)]
    entry = Entry("plan", (*[f"{word}.shape" for word in words], "arena_needed"))
    return Function("plan", (*shapes, needed), seq(*told, Store(needed, (ZERO,), ZERO, None)), (entry,))


def _specs(buffers: Sequence[Buffer]) -> tuple[TensorSpec, ...]:
    return tuple([TensorSpec(b.name, b.dtype, (element_count(b),)) for b in buffers])

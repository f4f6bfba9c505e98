"""The inputs, outputs and arena of a model for a device in the memory of the host's processor, which runs some of its kernels.

An input that kernels of the processor read is where the caller has it, and an output that they alone write is where the caller
wants it: both are arguments of the entry a second time. Other outputs that they read or write a part of are memory of the host's
own. Arguments of a region are copied where it begins, from the device's memory, which has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.driver.host.crossings import NONE_CROSS, crossings_of, uses_processor
from weft.driver.host.host_memory import HostMemory, hosted, memory_beside
from weft.graph import Value
from weft.ir import ZERO
from weft.loop import Alloc, Buffer, Stmt, View, copy, seq

INSIDE: Final = "inside"
"""Names arguments of a region: copies, and not the caller's memory, which has the name of its tensor on the host."""


class TensorsThere:
    """The tensors of a model beside those in a device's *memory*; `memory` is that with them beside it.

    There are none where the processor runs no kernels, or all.
    """

    def __init__(self, memory: HostMemory) -> None:
        self.is_used = uses_processor(memory.fused)
        self.crossings = crossings_of(memory.fused) if self.is_used else NONE_CROSS
        self.ins, self.outs = [hosted(b) for b in memory.ins], [hosted(b) for b in memory.outs]
        beside = memory_beside(memory, self.ins, self.outs, hosted(memory.arenas[0]), hosted(memory.weights))
        self.memory = replace(memory, crossings=self.crossings, beside=beside) if self.is_used else memory
        self.arena, self.weights = beside.arenas[0], beside.weights

    def params(self) -> dict[Buffer, str]:
        """Returns the arguments that the entry takes for them, and the words that say which these are."""
        fused = self.memory.fused
        graph = fused.graph
        read = {self.ins[k]: f"in{k}" for k, v in enumerate(graph.inputs) if fused.root(v) in self.crossings.read_there}
        made = {
            self.outs[k]: f"out{k}"
            for k, v in enumerate(graph.outputs)
            if fused.root(v) in self.crossings.made_there and not fused.stage(*v.shape)
        }
        return {**read, **made, self.arena: "arena", self.weights: "constants"} if self.is_used else {}

    def around(self, body: Stmt) -> Stmt:
        """Returns *body* with memory for the outputs that are not the caller's, but for late ones."""
        fused = self.memory.fused
        for k, v in enumerate(fused.graph.outputs):
            if not fused.stage(*v.shape):
                body = self._own(k, body)
        return body

    def late_output(self, number: int, asked: Buffer, body: Stmt) -> Stmt:
        """Returns *body* with an output whose memory has been *asked* of the caller, or one of the host's own."""
        root = self.memory.fused.root(self.memory.fused.graph.outputs[number])
        if root in self.crossings.made_there:
            return View(self.outs[number], asked, ZERO, body)
        return self._own(number, body)

    def _own(self, number: int, body: Stmt) -> Stmt:
        """Returns *body* with memory of the host's own for an output, if it needs that."""
        root = self.memory.fused.root(self.memory.fused.graph.outputs[number])
        is_own = self.crossings.uses_there(root) and root not in self.crossings.made_there
        return Alloc(self.outs[number], body) if is_own else body


class RegionThere:
    """The tensors of a region beside those in the device's memory *inner*; its arena is a *workspace* of the graph *around*."""

    def __init__(self, inner: HostMemory, around: HostMemory, workspace: Value) -> None:
        assert around.beside is not None  # a model has that if any of its regions uses the processor
        self.inner = inner
        self.crossings = crossings_of(inner.fused, is_region=True)
        self.ins, self.outs = ([hosted(b, INSIDE) for b in of] for of in (inner.ins, inner.outs))
        self.views = around.beside.views()
        self.whole, self.arena = self.views.buffer(workspace), hosted(inner.arenas[0])
        beside = memory_beside(inner, self.ins, self.outs, self.arena, around.beside.weights)
        self.memory = replace(inner, crossings=self.crossings, beside=beside)

    def around(self, body: Stmt) -> Stmt:
        """Returns the statements of the region with memory for what its kernels on the processor read and write."""
        graph, root = self.inner.fused.graph, self.inner.fused.root
        read = [k for k, v in enumerate(graph.inputs) if root(v) in self.crossings.read_there]
        written = [k for k, v in enumerate(graph.outputs) if self.crossings.uses_there(root(v))]
        given = [copy(self.ins[k], ZERO, self.inner.ins[k], ZERO, self.ins[k].shape[0]) for k in read]
        body = seq(*given, body)
        for b in dict.fromkeys([*[self.ins[k] for k in read], *[self.outs[k] for k in written]]):
            body = Alloc(b, body)
        return self.views.around(View(self.arena, self.whole, ZERO, body))

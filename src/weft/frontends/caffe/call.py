"""One layer of a network being imported: its parameters, its inputs (bottoms) and its weights (blobs)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.frontends.caffe.parameters import Parameters
from weft.graph import Array, Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes
from weft.ir import ExprLike
from weft.support.dtypes import f32


@dataclass(frozen=True)
class State:
    """A layer's state between runs of the network: the value *taken* as a run begins, and the one *left* at its end."""

    taken: Value
    left: Operand


class Call(Builder):
    """A layer: a translation asks it for parameters by name, takes its blobs, and adds Weft operators.

    *source* is its type, its name and its line; `layer` are the fields of the layer itself, and `tops` the number of its results.
    """

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        layer: Parameters,
        inputs: Sequence[Operand],
        blobs: Sequence[Array],
        tops: int,
        states: list[State],
    ) -> None:
        super().__init__(evaluator, source)
        self.layer = layer
        self.inputs = inputs
        self.tops = tops
        self._blobs = blobs
        self._states = states

    @property
    def input(self) -> Operand:
        """The first input; raises `ModelError` where there is none."""
        if not self.inputs:
            self.fail("it has no bottom", "name its input: bottom: ...")
        return self.inputs[0]

    def image(self) -> Operand:
        """Returns the first input; raises `ModelError` unless it is [N, C, H, W]."""
        if self.input.rank != 4:
            self.fail(f"its bottom should have 4 dimensions: {self.input!r}")
        return self.input

    def two(self) -> tuple[Operand, Operand]:
        """Returns two inputs; raises `ModelError` for another number of them."""
        if len(self.inputs) != 2:
            self.fail(f"it has {len(self.inputs)} bottoms, and takes two")
        return self.inputs[0], self.inputs[1]

    def parameters(self, name: str) -> Parameters:
        """Returns the parameters of the layer's message *name*: those of Caffe's defaults where it is absent."""
        return self.layer.inner(name)

    @property
    def blobs(self) -> int:
        """The number of the layer's blobs."""
        return len(self._blobs)

    def blob(self, k: int, shape: Sequence[int], what: str) -> CompileTimeConstant:
        """Returns the layer's blob *k* in *shape*; raises `ModelError` if it is missing, or has not so many numbers."""
        if k >= len(self._blobs):
            self.fail(
                f"its {what}, blob {k}, {'is' if self._blobs else 'and all of its blobs are'} not in the .caffemodel",
                "give the .caffemodel that was trained with this .prototxt",
            )
        found = self._blobs[k]
        if found.size != math.prod(shape):
            self.fail(
                f"its {what} should be {tuple(shape)}, and the .caffemodel has {found.shape}",
                "give the .caffemodel that was trained with this .prototxt",
            )
        return CompileTimeConstant(found.reshape(tuple(shape)), f"{self.layer.text('name', '')}.{what}")

    def state(self, name: str, shape: Sequence[ExprLike]) -> Value:
        """Returns the layer's state *name* as a run begins with it, zeros in the first; see `leave`."""
        graph = self.evaluator.graph
        wanted = f"{self.layer.text('name', '')}.{name}"
        return graph.input(graph.fresh_name(wanted) if wanted in {v.name for v in graph.inputs} else wanted, shape, f32)

    def leave(self, taken: Value, left: Operand) -> None:
        """Sets the next value of a state."""
        self._states.append(State(taken, left))

    def axis(self, value: int, x: Operand) -> int:
        """Returns an axis of *x*, which may be counted from the end."""
        return self.axis_of(value, x.rank)

    def static(self, x: Operand) -> list[int]:
        """Returns the sizes of *x* but the first; raises `ModelError` for symbolic ones."""
        found = static_sizes(x.shape[1:])
        if found is None:
            self.fail(f"it needs sizes that are numbers: {x!r}", 'give them: shapes={"data": (1, 3, 224, 224)}')
        return found

    def number(self, value: float, like: Operand) -> CompileTimeConstant:
        """Returns a number of the type of *like*."""
        return self.scalar(value, like.dtype)

"""One layer of a neural network being imported: its inputs, and its parameters by the numbers of the schema's fields."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from weft.frontends.coreml.call import AGAIN
from weft.frontends.protobuf_message import Message
from weft.graph import Array
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator
from weft.support.errors import ModelError

EPSILON: Final = 1e-6
"""The default of the number that layers add to another before its quotient, root or logarithm."""
LARGEST: Final = 1 << 31


@dataclass(frozen=True)
class Scope:
    """The values of a network by name at the place of a layer, and the function that adds the layers of one inside of it."""

    values: MutableMapping[str, Operand]
    run: Callable[[Message, MutableMapping[str, Operand], PartialEvaluator], None]


class NetworkCall(Builder):
    """A layer: a translation asks it for inputs and parameters, and adds Weft operators through it.

    `outputs` is how many results it has, and `blobs_have_five_dimensions` tells whether the network's tensors are [sequence,
    batch, C, H, W], of which Weft leaves out the sequence; `scope` is for loops and branches.
    """

    def __init__(
        self,
        evaluator: PartialEvaluator,
        source: str,
        inputs: Sequence[Operand],
        params: Message,
        outputs: int,
        blobs_have_five_dimensions: bool,
        scope: Scope,
    ) -> None:
        super().__init__(evaluator, source)
        self.inputs, self.params, self.outputs = inputs, params, outputs
        self.blobs_have_five_dimensions, self.scope = blobs_have_five_dimensions, scope

    def input(self, i: int = 0, rank: int | None = None) -> Operand:
        """Returns an input; raises `ModelError` where there is none, or it has not *rank* dimensions."""
        if i >= len(self.inputs):
            self.fail(f"it has {len(self.inputs)} inputs", AGAIN)
        if rank is not None and self.inputs[i].rank != rank:
            self.fail(f"its input should have {rank} dimensions: {self.inputs[i]!r}", AGAIN)
        return self.inputs[i]

    def integer(self, number: int, default: int = 0) -> int:
        """Returns an integer; *default* where it is absent or 0."""
        found = self.params.integer(number) or default
        if abs(found) > LARGEST:
            self.fail(f"its parameter {number} is {found}", AGAIN)
        return found

    def ints(self, number: int, default: Sequence[int] = ()) -> list[int]:
        """Returns a list of integers; *default* where it is empty."""
        found = [*(self.params.integers(number) or default)]
        if any(abs(v) > LARGEST for v in found):
            self.fail(f"its parameter {number} is {found}", AGAIN)
        return found

    def weight(self, number: int, shape: Sequence[int], params: Message | None = None) -> CompileTimeConstant:
        """Returns weights; raises `ModelError` for those of another number than *shape* has, and for quantised sums."""
        array = self._floats((params or self.params).inner(number), shape)
        if array.size != int(np.prod(shape)):
            self.fail(f"its weights are {array.size} numbers, not those of {list(shape)}", AGAIN)
        return CompileTimeConstant(array.reshape(shape), f"{self.source.partition(' ')[2]}.{number}")

    def _floats(self, m: Message, shape: Sequence[int]) -> Array:
        half, packed = m.raw(2), m.raw(30)
        if half is not None and len(half):
            if len(half) % 2:
                self.damaged()
            return np.frombuffer(half, np.float16).astype(np.float32)
        if m.has(31):
            self.fail("layers that quantise their input are not supported", "convert the model without quantisation")
        return (
            m.numbers(1) if packed is None else self._dequantized(np.frombuffer(packed, np.uint8), m.inner(40), shape)
        )

    def _dequantized(self, packed: Array, how: Message, shape: Sequence[int]) -> Array:
        """Returns weights of a few bits, the highest first, in a table, or in steps of a scale from a number on.

        Scales and numbers are one for all, or one for each index of the first dimension, or of the second.
        """
        bits, count = how.integer(1), int(np.prod(shape))
        if not 1 <= bits <= 8 or packed.size * 8 < bits * count:
            self.damaged()
        digits = np.unpackbits(packed)[: bits * count].reshape(count, bits)
        q = digits @ (1 << np.arange(bits)[::-1])
        if (table := how.message(102)) is not None:
            return table.numbers(1)[q].astype(np.float32)
        scale, first = (self._spread(how.inner(101).numbers(k), shape) for k in (1, 2))
        return (q.reshape(shape).astype(np.float32) * scale + first).reshape(-1)

    def _spread(self, v: Array, shape: Sequence[int]) -> Array:
        axes = [d for d in range(min(len(shape), 2)) if v.size == shape[d]]
        if v.size == 1 or not axes:
            return v if v.size == 1 else np.zeros(1, np.float32) if not v.size else self.damaged()
        return v.reshape([-1 if d == axes[0] else 1 for d in range(len(shape))])

    def damaged(self) -> NoReturn:
        """Raises `ModelError` for weights that are no whole numbers."""
        raise ModelError("its weights are damaged", where=self.source, hint="copy the model again")

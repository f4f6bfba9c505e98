"""Images with their channels last: formats have them so, Weft's operators take them first.

`ChannelsLastBuilder.first` and `last` change between the two, and remember the layout of each tensor: between layers that work on
images nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft.graph import Value
from weft.graph.builder import Builder, CompileTimeConstant, Operand, PartialEvaluator, static_sizes


class ChannelsLastBuilder(Builder):
    """A builder for nodes of a model whose images have their channels last.

    *images* has, for each image that was made with its channels first and given them last, the one with its channels first; all
    builders of a model share it.
    """

    def __init__(self, evaluator: PartialEvaluator, source: str, images: dict[Value, Operand]) -> None:
        super().__init__(evaluator, source)
        self.images = images

    def permuted(self, x: Operand, perm: Sequence[int]) -> Operand:
        """Returns *x* with its dimensions in another order; a weight, however large, is permuted at once.

        Where only dimensions of one move, as those of an image of one pixel, the elements stay as they lie.
        """
        if list(perm) == list(range(x.rank)):
            return x
        if isinstance(x, CompileTimeConstant) and not x.symbolic:
            return CompileTimeConstant(np.ascontiguousarray(x.array.transpose(perm)), x.name, x.dtype)
        moved = [d for d in perm if static_sizes([x.shape[d]]) != [1]]
        return self.reshape(x, [x.shape[d] for d in perm]) if moved == sorted(moved) else self.transpose(x, perm)

    def first(self, x: Operand, *, last: bool = True) -> Operand:
        """Returns images with their channels first; *last* tells whether those of *x* are last."""
        if not last or x.rank < 3:
            return x
        known = self.images.get(x) if isinstance(x, Value) else None
        return self.permuted(x, [0, x.rank - 1, *range(1, x.rank - 1)]) if known is None else known

    def last(self, x: Operand, *, last: bool = True) -> Operand:
        """Returns images whose channels are first with their channels last; as they are unless they should be *last*."""
        if not last or x.rank < 3:
            return x
        made = self.permuted(x, [0, *range(2, x.rank), 1])
        if isinstance(made, Value):
            self.images[made] = x
        return made

    def pointwise(self, function: Callable[..., Operand], *inputs: Operand) -> Operand:
        """Returns an element-wise function of tensors that broadcast, computed with channels first where one is an image so."""
        rank = max((x.rank for x in inputs), default=0)
        ours = [x for x in inputs if self._is_first(x)]
        if not ours or not all(x.rank == rank or not self._is_first(x) for x in inputs):
            return function(*inputs)
        if any(isinstance(x, CompileTimeConstant) and x.symbolic and x.rank for x in inputs):
            return function(*inputs)
        return self.last(function(*[self._aligned(x, rank) for x in inputs]))

    def along(self, function: Callable[..., Operand], axis: int, *inputs: Operand) -> Operand:
        """Returns a function of a dimension and tensors: *axis*, or where it is in them if all have their channels first."""
        if not all(self._is_first(x) for x in inputs):
            return function(axis, *inputs)
        moved = 0 if axis == 0 else axis % (inputs[0].rank - 1) + 1
        return self.last(function(moved, *[self.first(x) for x in inputs]))

    def last_of(self, x: Operand) -> Operand:
        """Returns images that the model has with their channels first with their channels last."""
        return self.transpose(x, [0, *range(2, x.rank), 1])

    def _is_first(self, x: Operand) -> bool:
        return isinstance(x, Value) and x in self.images

    def _aligned(self, x: Operand, rank: int) -> Operand:
        """Returns *x*, which broadcasts to images of *rank* with channels last, so that it does with channels first."""
        if x.rank == 0:
            return x
        return self.first(x if x.rank == rank else self.reshape(x, [*[1] * (rank - x.rank), *x.shape]))

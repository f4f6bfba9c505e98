"""The sources of a model's random operators: a seed of the graph, one of each region in it, and a stream for each operator.

seed = fresh_seed()                        or an input of the graph
loop(..., seed, body=(step, ..., seed) ->  own = the bits of seed and step; random_bits(own, stream=1))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import count

from weft.graph.builder import Builder, Operand
from weft.graph.composites.numerics.random_numbers import RandomStream, seed_of_step


class RandomSeeds:
    """The seed of the graph of *builder*, which *make* makes when it is first asked for; regions share the *streams*."""

    def __init__(
        self, builder: Builder, make: Callable[[Builder], Operand], streams: Iterator[int] | None = None
    ) -> None:
        self.builder = builder
        self.make = make
        self.streams = count(1) if streams is None else streams

    @cached_property
    def seed(self) -> Operand:
        """The seed, an int64."""
        return self.make(self.builder)

    def stream(self) -> RandomStream:
        """Returns a stream that no other operator has."""
        return RandomStream(self.seed, next(self.streams))

    def inside(self, region: Builder, step: Operand | None = None) -> RandomSeeds:
        """Returns those of a region: a branch has the seed of the graph around, iteration *step* of a loop its own.

        Nodes imported into the same graph have the same seed.
        """
        if region.evaluator is self.builder.evaluator:
            return self
        return RandomSeeds(
            region, lambda b: self.seed if step is None else seed_of_step(b, self.seed, step), self.streams
        )

"""The dimensions of a contraction's output channels, in its result and in its weight: passes that scale channels ask for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from weft.ops.folding import Array

LineUp: TypeAlias = Callable[[Callable[[str], Any], Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Contraction:
    """A sum of products of the first operand's elements and those of the second, the weight; a third is added as the bias.

    The output channels are dimension *channel_axis* of the result. `line_up(attribute, weight, factors)`, with the call's
    attributes by name, gives the weight and one factor for each channel (or one for all) in shapes that broadcast: their
    product is the weight of the scaled result.
    """

    channel_axis: int
    line_up: LineUp


def along(axis: int) -> LineUp:
    """Lines up factors with the output channels in dimension *axis* of a weight."""
    return lambda attribute, weight, factors: line_up_along(axis, weight, factors)


def line_up_along(axis: int, weight: Array, factors: Array) -> tuple[Array, Array]:
    """Returns the weight, and the factors in its dimension *axis*."""
    return weight, factors.reshape([-1 if d == axis % weight.ndim else 1 for d in range(weight.ndim)])


def through_groups(attribute: Callable[[str], Any], weight: Array, factors: Array) -> tuple[Array, Array]:
    """Lines up the weight [C, OC/group, *K] of a transposed convolution, whose channels are counted through the groups."""
    group, channels = attribute("group"), weight.shape[1]
    each = np.broadcast_to(factors, (group * channels,)).reshape(group, 1, channels, *[1] * (weight.ndim - 2))
    return weight.reshape(group, weight.shape[0] // group, *weight.shape[1:]), each

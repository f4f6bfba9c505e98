"""Tensors that operators are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from tests.frontends.torch.modules import numbers

Case: TypeAlias = tuple[Callable[..., Any], list[Any]]
"""A function of tensors, and tensors to try it on."""

F, A = torch.nn.functional, torch.ops.aten
X, Y, POSITIVE = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4).abs() + 0.1
IMAGES, ROWS, SERIES, VOLUME = numbers(2, 4, 8, 8), numbers(2, 3, 6), numbers(2, 4, 9), numbers(1, 2, 4, 6, 4)
INTS, BOOLS, MASK = torch.tensor([[3, -2], [0, 7]]), X > 0, numbers(6, 6) > 0
W2, W1, W3 = numbers(6, 4, 3, 3, seed=2), numbers(6, 4, 3, seed=2), numbers(4, 2, 3, 3, 3, seed=2)
C4, D6 = numbers(4, seed=3), numbers(6, seed=4)
HEADS = [numbers(2, 3, 5, 8, seed=k) for k in range(3)]

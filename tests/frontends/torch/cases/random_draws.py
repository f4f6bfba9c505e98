"""Random numbers, and the moments of their distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.frontends.torch.cases.tensors import A
from tests.frontends.torch.modules import numbers

F = torch.nn.functional
X = numbers(200, 100)
ZEROS = torch.zeros(200, 100)

MOMENTS: dict[str, tuple[Callable[..., Any], Any, float, float]] = {
    "rand": (lambda x: torch.rand(200, x.shape[1]), X, 1 / 2, 1 / 12),
    "rand_like": (torch.rand_like, X, 1 / 2, 1 / 12),
    "randn": (lambda x: torch.randn(200, 100), X, 0, 1),
    "randn_like": (torch.randn_like, X, 0, 1),
    "normal": (lambda x: torch.normal(2.0, 3.0, (200, 100)), X, 2, 9),
    "normal_functional": (lambda x: A.normal_functional(x, 2.0, 3.0), X, 2, 9),
    "uniform": (lambda x: x.clone().uniform_(2, 5), X, 3.5, 9 / 12),
    "randint": (lambda x: torch.randint(5, (200, 100)), X, 2, 2),
    "randint of low": (lambda x: torch.randint(-2, 3, (200, 100)), X, 0, 2),
    "randint_like": (lambda x: torch.randint_like(x, 5), X, 2, 2),
    "randint_like of low": (lambda x: torch.randint_like(x, -2, 3), X, 0, 2),
    "randperm": (lambda x: torch.randperm(20000).reshape(200, 100) / 20000.0, X, 1 / 2, 1 / 12),
    "random": (lambda x: A.random.default(x) / 2.0**24, X, 1 / 2, 1 / 12),
    "random to": (lambda x: A.random.to(x, 5), X, 2, 2),
    "bernoulli": (lambda x: A.bernoulli.p(x, 0.25), X, 1 / 4, 3 / 16),
    "dropout": (lambda x: F.dropout(x + 1, 0.25, training=True), ZEROS, 1, 1 / 3),
    "rrelu": (lambda x: F.rrelu(x - 1, 0.25, 0.75, training=True), ZEROS, -1 / 2, 1 / 48),
    "multinomial": (lambda x: torch.multinomial(x + 1, 100, replacement=True) / 100, ZEROS, 0.495, 1 / 12),
    "exponential": (lambda x: x.clone().exponential_(2.0), X, 1 / 2, 1 / 4),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None] + 1, dropout_p=0.25).mean(-1),
        ZEROS,
        1,
        1 / 3 / 200,
    ),
}
"""Functions, and the mean and the variance that their results should have."""

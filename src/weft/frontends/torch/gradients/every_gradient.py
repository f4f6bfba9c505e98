"""The decompositions of all gradients, by their operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.frontends.torch.gradients.chosen_elements import of_chosen_elements
from weft.frontends.torch.gradients.distances import of_distances
from weft.frontends.torch.gradients.grid_samples import of_grid_samples
from weft.frontends.torch.gradients.windows_and_attention import of_windows_and_attention


def gradients() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    return {**of_windows_and_attention(), **of_chosen_elements(), **of_distances(), **of_grid_samples()}

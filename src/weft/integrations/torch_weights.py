"""Whether weights of PyTorch's have changed since they were looked at last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from weft.frontends.torch.nodes import elements_of

SAMPLES: Final = 64
"""About as many elements of a tensor are compared, at odd distances, which meet any pattern of rows and columns."""


class WeightWatch:
    """Compares tensors with what they were at the last look: their places in memory, PyTorch's count of writes, some elements.

    These samples tell of writes that nobody counts, through `Tensor.data` or NumPy, as optimizers and loaders of weights do
    them to whole tensors. A look takes about a microsecond a tensor.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[int, int, bytes]] = []
        self._samples: dict[int, tuple[int, Any]] = {}

    def has_changed(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Tells whether any of *tensors*, the same ones in each call, is not as the last call found it; true in the first."""
        now = [self._look(k, t) for k, t in enumerate(tensors)]
        changed = now != self._seen
        self._seen = now
        return changed

    def _look(self, k: int, tensor: torch.Tensor) -> tuple[int, int, bytes]:
        place = tensor.data_ptr()
        held, sample = self._samples.get(k, (0, None))
        if held != place or not tensor.is_contiguous():
            flat = elements_of(tensor, "weight").reshape(-1)
            sample = flat[:: flat.size // SAMPLES | 1]
            self._samples[k] = (place, sample)
        return place, counted_writes(tensor), sample.tobytes()


def counted_writes(tensor: torch.Tensor) -> int:
    """Returns how often a tensor was written; -1 for those of inference mode: nobody counts, so they are no constants."""
    return -1 if tensor.is_inference() else tensor._version

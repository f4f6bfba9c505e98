"""Hints for arrays that a model can't take, in terms of the library that made them.

Libraries are told by their classes' modules: this package imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.runtime.package import TensorSpec

_STEPS: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (lambda x: bool(x.requires_grad), ".detach()"),
    (lambda x: bool(x.is_quantized), ".dequantize()"),
    (lambda x: str(x.layout) != "torch.strided", ".to_dense()"),
    (lambda x: bool(x.is_conj()), ".resolve_conj()"),
    (lambda x: bool(x.is_neg()), ".resolve_neg()"),
    (lambda x: str(x.device.type) not in ("cpu", "meta"), ".cpu()"),
)
"""The attributes that keep a torch tensor from export as plain numbers, and the methods that undo them, in order."""


def is_torch(value: object) -> bool:
    """Tells whether *value* is a tensor of PyTorch, or of a class derived from it."""
    return any(c.__module__ == "torch" and c.__qualname__ == "Tensor" for c in type(value).__mro__)


def is_negated(value: object) -> bool:
    """Tells whether *value* is a torch tensor whose elements are the negatives of those in memory, of which DLPack tells nothing.

    Such is the imaginary part of a conjugated tensor.
    """
    return is_torch(value) and bool(value.is_neg())  # type: ignore[attr-defined] # a tensor has it


def conversion(value: object, spec: TensorSpec) -> str:
    """Returns the expression that makes *value* one of the spec's dtype."""
    dtype = spec.dtype.numpy.name
    return f"{spec.name}.to(torch.{dtype})" if is_torch(value) else f"{spec.name}.astype('{dtype}')"


def readable(value: object, spec: TensorSpec) -> str:
    """Returns the expression to pass in the place of *value*, which cannot be exported."""
    if not is_torch(value):
        return f"give an array in the CPU's memory, such as np.asarray({spec.name})"
    if str(value.device.type) == "meta":  # type: ignore[attr-defined]
        return "give a tensor with values: one on the device 'meta' has a shape only"
    steps = "".join(step for needed, step in _STEPS if needed(value))
    return f"give {spec.name}{steps}" if steps else f"give a plain tensor, such as {conversion(value, spec)}"

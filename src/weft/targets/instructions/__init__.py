"""Tensor instructions: how they are declared, and those of each machine."""

from weft.targets.instructions.known_instructions import INTRINSICS, dot_products, intrinsics_of
from weft.targets.instructions.tensor_intrinsic import ORDINARY, DotProduct, TensorIntrinsic

__all__ = ["INTRINSICS", "ORDINARY", "DotProduct", "TensorIntrinsic", "dot_products", "intrinsics_of"]

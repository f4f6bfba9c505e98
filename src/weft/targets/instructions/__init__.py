"""Tensor instructions: how they are declared, and those of each machine."""

from weft.targets.instructions.known_instructions import INTRINSICS, intrinsics_of
from weft.targets.instructions.tensor_intrinsic import ORDINARY, TensorIntrinsic

__all__ = ["INTRINSICS", "ORDINARY", "TensorIntrinsic", "intrinsics_of"]

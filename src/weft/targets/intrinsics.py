"""All tensor instructions that are declared, by name and by target."""

from __future__ import annotations

from typing import Final

from weft.targets.intrinsics_arm import ARM
from weft.targets.intrinsics_gemm_unit import GEMM_UNIT
from weft.targets.intrinsics_portable import PORTABLE
from weft.targets.intrinsics_x86 import X86
from weft.targets.target import Target
from weft.targets.tensor_intrinsic import TensorIntrinsic

INTRINSICS: Final = {i.name: i for i in (*X86, *ARM, *GEMM_UNIT, *PORTABLE)}


def intrinsics_of(target: Target) -> tuple[TensorIntrinsic, ...]:
    """Returns the tensor instructions that *target* has."""
    return tuple([i for i in INTRINSICS.values() if i.is_on(target)])

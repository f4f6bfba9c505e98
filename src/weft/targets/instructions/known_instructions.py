"""All tensor instructions that are declared, by name and by target."""

from __future__ import annotations

from typing import Final

from weft.loop import declare_effects
from weft.targets.instructions.arm import ARM
from weft.targets.instructions.gemm_unit import GEMM_UNIT
from weft.targets.instructions.interleaving import PORTABLE
from weft.targets.instructions.tensor_intrinsic import DotProduct, TensorIntrinsic
from weft.targets.instructions.x86 import X86
from weft.targets.target import Target

INTRINSICS: Final = {i.name: i for i in (*X86, *ARM, *GEMM_UNIT, *PORTABLE)}

for _known in INTRINSICS.values():
    declare_effects(_known.name, _known.effects)


def intrinsics_of(target: Target) -> tuple[TensorIntrinsic, ...]:
    """Returns the tensor instructions that *target* has."""
    return tuple([i for i in INTRINSICS.values() if i.is_on(target)])


def dot_products(target: Target) -> dict[str, DotProduct]:
    """Returns the dot products that *target* has on its widest vectors, by the names of instructions, the fastest first."""
    shapes = {i.name: i.dot for i in intrinsics_of(target) if i.dot is not None}
    widest = {n: s for n, s in shapes.items() if s.lanes == target.lanes(s.sums.bits)}
    return dict(sorted(widest.items(), key=lambda x: x[1].cycles))

"""All tensor instructions that are declared, by name and by target."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.loop import Effects, declare_effects
from weft.targets.instructions.amx import AMX, CONFIGURE, RELEASE
from weft.targets.instructions.arm import ARM
from weft.targets.instructions.gemm_unit import GEMM_UNIT
from weft.targets.instructions.interleaving import PORTABLE
from weft.targets.instructions.nvidia import NVIDIA
from weft.targets.instructions.tensor_intrinsic import DotProduct, TensorIntrinsic
from weft.targets.instructions.warp_products import WARP_PRODUCTS
from weft.targets.instructions.x86 import X86
from weft.targets.target import Target

INTRINSICS: Final = {i.name: i for i in (*X86, *AMX, *ARM, *GEMM_UNIT, *WARP_PRODUCTS, *NVIDIA, *PORTABLE)}

for _known in INTRINSICS.values():
    declare_effects(_known.name, _known.effects)
for _name in (CONFIGURE, RELEASE):
    declare_effects(_name, Effects)


def intrinsics_of(target: Target) -> tuple[TensorIntrinsic, ...]:
    """Returns the tensor instructions that *target* has."""
    return tuple([i for i in INTRINSICS.values() if i.is_on(target)])


def _on_core(i: TensorIntrinsic, shape: DotProduct, target: Target) -> DotProduct:
    """Returns the shape of a dot product with the time that it takes on the target's core, where that is a fact of it."""
    return replace(shape, cycles=target.core.bf16_dot_cycles) if "avx512bf16" in i.features else shape


def dot_products(target: Target) -> dict[str, DotProduct]:
    """Returns the dot products of *target* on its widest vectors, by the names of instructions, the fastest by the term first."""
    shapes = {i.name: _on_core(i, i.dot, target) for i in intrinsics_of(target) if i.dot is not None}
    widest = {n: s for n, s in shapes.items() if s.lanes == target.lanes(s.sums.bits)}
    return dict(sorted(widest.items(), key=lambda x: x[1].cycles / x[1].group))

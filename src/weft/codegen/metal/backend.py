"""Metal Shading Language as a backend: source text of kernels, for a compiler that Apple's systems alone have."""

from __future__ import annotations

from typing import Final

from weft.codegen.c_family.check_fragments import check_fragments
from weft.codegen.c_family.helpers import helpers
from weft.codegen.c_family.source_backend import SourceBackend
from weft.codegen.c_family.writer import Writer
from weft.codegen.metal.metal_dialect import METAL
from weft.codegen.metal.metal_head import HEAD
from weft.codegen.metal.metal_helpers import OWN_HELPERS
from weft.codegen.metal.metal_kernel import define_kernel
from weft.codegen.metal.simdgroup_products import number_lanes

BACKEND: Final = SourceBackend(
    name="metal",
    language="Metal Shading Language",
    define=lambda fn, target, needs: define_kernel(Writer(target, fn.name, needs, METAL), fn),
    whole=lambda joined: "\n".join([HEAD, helpers(joined.helpers, OWN_HELPERS), *joined.texts]),
    own_passes=(("check_fragments", check_fragments), ("number_lanes", number_lanes)),
)

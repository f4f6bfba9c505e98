"""Tensor instructions: how they are declared, and those of each machine."""

from weft.targets.instructions.amx import (
    CONFIGURE,
    GROUPS,
    LEFT_TILES,
    MOST_ROWS,
    RELEASE,
    RIGHT_TILES,
    ROW_BYTES,
    SUM_TILES,
    TILE_LANES,
    TILE_OPERATIONS,
    TileOperation,
)
from weft.targets.instructions.known_instructions import INTRINSICS, dot_products, intrinsics_of
from weft.targets.instructions.nvidia import (
    COPY_BYTES,
    FRAGMENT,
    FRAGMENT_INSTRUCTIONS,
    GROUP_COLUMNS,
    GROUP_INSTRUCTIONS,
    SWIZZLED_BYTES,
    SWIZZLED_ROWS,
    WARPS_OF_GROUP,
    Fragment,
)
from weft.targets.instructions.tensor_intrinsic import GROUP_BYTES, ORDINARY, DotProduct, TensorIntrinsic, group_of

__all__ = [
    "CONFIGURE",
    "COPY_BYTES",
    "FRAGMENT",
    "FRAGMENT_INSTRUCTIONS",
    "GROUPS",
    "GROUP_BYTES",
    "GROUP_COLUMNS",
    "GROUP_INSTRUCTIONS",
    "INTRINSICS",
    "LEFT_TILES",
    "MOST_ROWS",
    "ORDINARY",
    "RELEASE",
    "RIGHT_TILES",
    "ROW_BYTES",
    "SUM_TILES",
    "SWIZZLED_BYTES",
    "SWIZZLED_ROWS",
    "TILE_LANES",
    "TILE_OPERATIONS",
    "WARPS_OF_GROUP",
    "DotProduct",
    "Fragment",
    "TensorIntrinsic",
    "TileOperation",
    "dot_products",
    "group_of",
    "intrinsics_of",
]

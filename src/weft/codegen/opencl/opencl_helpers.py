"""The helpers for which OpenCL C has functions of its own: atomic updates of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.c_family.atomic_helpers import WORDS_OF_32, native_updates, swaps

_SWAP: Final = "const WORD seen = atomic_cmpxchg(place, *old, made), before = *old; *old = seen; return seen == before;"
_UPDATES: Final = {
    ("add", "u32"): "atomic_add(place, x);",
    **{(k, "u32"): f"atomic_{k}(place, x);" for k in ("min", "max")},
    **{(k, "i32"): f"atomic_{k}((WEFT_GLOBAL int *)place, x);" for k in ("min", "max")},
}
OWN_HELPERS: Final[Mapping[str, str]] = {**swaps(_SWAP, WORDS_OF_32), **native_updates(_UPDATES)}
"""The helpers by name, see `c_family.helpers`; devices with OpenCL 1.2 have none of 64 bits for certain."""

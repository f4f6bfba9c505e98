"""Takes this processor for one of the level `WEFT_TEST_LEVEL`, in each Python process that has this file in its path."""

from __future__ import annotations

import os
from typing import Final

from weft.native import _rt

WIDER: Final = {
    "avx512": (),
    "avx2": ("avx512", "amx"),
    "sse4": ("avx", "amx", "fma", "f16c", "bmi", "abm", "movbe", "vaes", "vpclmulqdq"),
}
"""What the names of the features that a processor of each level lacks begin with."""

_level = os.environ.get("WEFT_TEST_LEVEL")
if _level:
    _kept = [name for name in _rt.features() if not name.startswith(WIDER[_level])]
    _rt.features = lambda: list(_kept)

"""The versions that code made by NVRTC depends on."""

from __future__ import annotations

from weft.codegen.cuda.nvrtc_library import library_version
from weft.targets import Target


def facts(target: Target) -> str:
    """Returns NVRTC's version, or that there is none."""
    return f"nvrtc {library_version() or 'missing'}"

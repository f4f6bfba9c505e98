"""NVRTC, the compiler of CUDA C++ as a library: where it is, and its version.

The extra `cuda` of Weft brings it as the package `nvidia-cuda-nvrtc`, with nothing else of CUDA; a toolkit serves too.
"""

from __future__ import annotations

import ctypes
from ctypes.util import find_library
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from weft.support.errors import ToolchainError

INSTALL: Final = "install Weft with its extra 'cuda': pip install '.[cuda]' in the folder of the checkout"


@cache
def library_path() -> str | None:
    """Returns the library's file, or its name where the system's loader knows it; None where there is none."""
    spec = find_spec("nvidia")
    folders = [Path(p) for p in spec.submodule_search_locations or ()] if spec is not None else []
    found = [p for folder in folders for p in folder.glob("*/lib/libnvrtc.so.*") if ".alt." not in p.name]
    return str(max(found, key=_number)) if found else find_library("nvrtc")


def _number(path: Path) -> int:
    last = path.name.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0


@cache
def library() -> Any:
    """Returns the library; raises `ToolchainError` where there is none."""
    path = library_path()
    try:
        if path is not None:
            return ctypes.CDLL(path)
    except OSError as error:
        raise ToolchainError(f"NVRTC does not load: {error}", hint=INSTALL) from error
    raise ToolchainError("NVRTC, which compiles CUDA C++, is not installed", hint=INSTALL)


@cache
def library_version() -> str | None:
    """Returns NVRTC's version, such as `13.5`; None where there is none."""
    if library_path() is None:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"

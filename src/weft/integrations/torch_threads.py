"""Weft's parallel loops are done by PyTorch's threads.

Those of OpenMP, which PyTorch computes with, spin for some milliseconds after each operator (GCC's `GOMP_SPINCOUNT`). A second
team beside them, Weft's own, would compete with them for the processors: docs/design/0078.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import torch

from weft.native import _rt

LIBRARY = "libtorch_cpu.dylib" if sys.platform == "darwin" else "libtorch_cpu.so"


def share_threads() -> bool:
    """Lets PyTorch's OpenMP runtime do the parallel loops of all models; returns whether it has one that can be found.

    Its functions are looked up from PyTorch's own library, since a process may have loaded several such runtimes.
    """
    if "backend: OpenMP" not in torch.__config__.parallel_info():
        return False
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / LIBRARY))
        _rt.use_openmp(_address(library.GOMP_parallel), _address(library.omp_get_thread_num))
    except (OSError, AttributeError):
        return False
    return True


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0

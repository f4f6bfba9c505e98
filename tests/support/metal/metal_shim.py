"""Kernels for Metal on the processor: `metal_stdlib` has what they use of the language, and a device runs them for the runtime.

The text is that for Apple's compiler, but that memory of a block is `static`, since blocks run one after another.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from tests.support.grid.host_kernels import compiled, entry, folder, grid_library

from weft.runtime.devices import Argument, device_kinds
from weft.runtime.devices.device_kinds import DeviceKind
from weft.support.errors import DeviceError

HERE = Path(__file__).parent
NAME = "Metal on the processor"
_KERNEL = re.compile(r"^kernel void (\w+)\((.*)\) \{$", re.MULTILINE)
_SHARED = re.compile(r"^( +)(threadgroup \w+ \w+\[)", re.MULTILINE)
_NUMBERS = {
    "threadgroup_position_in_grid": "blockIdx",
    "thread_position_in_threadgroup": "threadIdx",
    "thread_index_in_simdgroup": "grid_thread() % 32",
    "simdgroup_index_in_threadgroup": "grid_thread() / 32",
}
_CALLS = 'extern "C" { extern uint3 threadIdx, blockIdx; }'


def host_text(text: str) -> str:
    """The text of kernels, and the functions by which a grid runs them."""
    entries = [entry(name, list(map(_argument, params.split(", ")))) for name, params in _KERNEL.findall(text)]
    return "\n".join([_SHARED.sub(r"\1static \2", text), _CALLS, *entries])


def _argument(param: str) -> str:
    """What a parameter is given: what its attribute says."""
    declared, attribute = re.fullmatch(r"(.+?)\w+ \[\[(.+)\]\]", param).groups()  # type: ignore[union-attr]
    if attribute.startswith("buffer("):
        return f"({declared})p[{attribute[len('buffer(') : -1]}]"
    return _NUMBERS[attribute]


def check_text(text: str, *options: str) -> None:
    """Fails where Clang refuses the text of kernels, whose memories are address spaces."""
    source = folder() / "checked.metal.cpp"
    source.write_text(_SHARED.sub(r"\1static \2", text), encoding="utf-8")
    flags = ["-std=c++14", "-fsyntax-only", f"-I{HERE}", "-DWEFT_CHECK_SPACES", "-pedantic-errors", "-Wall", "-Werror"]
    quiet = [
        "-Wno-unknown-attributes",
        "-Wno-ignored-attributes",
        "-Wno-unused-function",
        "-Wno-pragma-once-outside-header",
    ]
    done = subprocess.run(
        ["clang++", *flags, *quiet, *options, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class HostMetal:
    """A device whose memory is that of the processor, filled with NaN; see `Device`."""

    name = NAME

    def __init__(self, source: str, kernels: Sequence[str], binaries: Sequence[bytes] = ()) -> None:
        self.grid = ctypes.CDLL(str(grid_library()))
        library = ctypes.CDLL(str(compiled(host_text(source), grid_library(), f"-I{HERE}")))
        self.kernels = [getattr(library, f"launch_{k}") for k in kernels]
        self.blocks: dict[int, np.ndarray[tuple[int], np.dtype[np.uint8]]] = {}

    def alloc(self, nbytes: int) -> int:
        made = np.full(max(nbytes, 1), 0xFF, np.uint8)
        self.blocks[made.ctypes.data] = made
        return made.ctypes.data

    def free(self, block: int) -> None:
        del self.blocks[block]

    def _place(self, block: int, at: int, nbytes: int) -> int:
        if block not in self.blocks or at < 0 or at + nbytes > self.blocks[block].nbytes:
            raise DeviceError(f"{nbytes} bytes at {at} are not in a block", hint="this is a bug in Weft")
        return block + at

    def write(self, block: int, at: int, source: int, nbytes: int) -> None:
        ctypes.memmove(self._place(block, at, nbytes), source, nbytes)

    def read(self, block: int, at: int, to: int, nbytes: int) -> None:
        ctypes.memmove(to, self._place(block, at, nbytes), nbytes)

    def move(self, to: Argument, source: Argument, nbytes: int) -> None:
        assert to.block is not None
        assert source.block is not None
        ctypes.memmove(self._place(to.block, to.at, nbytes), self._place(source.block, source.at, nbytes), nbytes)

    def launch(self, kernel: int, grid: Sequence[int], arguments: Sequence[Argument]) -> None:
        """Binds each buffer from where it begins, and the numbers as one more buffer."""
        places = [self._place(a.block, a.at, 0) for a in arguments if a.block is not None]
        numbers = np.array([a.at for a in arguments if a.block is None], np.int64)
        given = (ctypes.c_void_p * (len(places) + 1))(*places, numbers.ctypes.data)
        self.grid.grid_run(self.kernels[kernel], given, (ctypes.c_uint * 6)(*grid))

    def seconds(self, work: Callable[[], object]) -> float:
        begin = perf_counter()
        work()
        return perf_counter() - begin

    def close(self) -> None:
        self.blocks.clear()


def use_metal_shim(patch: pytest.MonkeyPatch) -> None:
    """Has the runtime find a device with Metal."""
    kinds = {**device_kinds.APIS, "metal": DeviceKind(HostMetal, lambda: [NAME], "")}
    for module in ("weft.runtime.devices.device_kinds", "weft.targets.registry", "weft.driver.check_target"):
        patch.setattr(f"{module}.APIS", kinds)

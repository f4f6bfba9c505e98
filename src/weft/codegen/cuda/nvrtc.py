"""Compiles CUDA C++ to machine code (a cubin) by NVRTC, which takes neither a GPU nor its driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Final

from weft.codegen.cuda.nvrtc_library import library
from weft.codegen.cuda.resources import Resources, read_resources
from weft.support.errors import ToolchainError

OPTIONS: Final = ("--std=c++17", "--device-as-default-execution-space", "--ptxas-options=-v")
"""Helpers become device functions; the assembler reports the resources of each kernel."""


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and the resources of its kernels by their names in the code."""

    data: bytes
    resources: dict[str, Resources]


def compile_cubin(text: str, arch: str) -> Cubin:
    """Compiles *text* for *arch*, such as `sm_90`; raises `ToolchainError` where NVRTC is missing, or refuses it."""
    program = c_void_p()
    _call("nvrtcCreateProgram", byref(program), text.encode(), b"weft.cu", 0, None, None)
    try:
        return _compiled(program, (f"--gpu-architecture={arch}", *OPTIONS), arch)
    finally:
        _call("nvrtcDestroyProgram", byref(program))


def _compiled(program: c_void_p, options: Sequence[str], arch: str) -> Cubin:
    given = (c_char_p * len(options))(*[o.encode() for o in options])
    status = library().nvrtcCompileProgram(program, len(options), given)
    log = _bytes("nvrtcGetProgramLog", program).rstrip(b"\0").decode(errors="replace")
    if status != 0:
        raise ToolchainError(f"NVRTC refused the kernels for {arch}: {log.strip() or _name(status)}", hint=_hint(log))
    return Cubin(_bytes("nvrtcGetCUBIN", program), read_resources(log))


def _hint(log: str) -> str:
    if "gpu-architecture" in log:
        return "use an architecture that this NVRTC knows, or a newer one: pip install -U nvidia-cuda-nvrtc"
    return "this is a bug in Weft"


def _bytes(getter: str, program: c_void_p) -> bytes:
    """Returns a result of NVRTC that is queried by two functions, one for its size and one for its bytes."""
    size = c_size_t()
    _call(f"{getter}Size", program, byref(size))
    made = ctypes.create_string_buffer(size.value)
    _call(getter, program, made)
    return made.raw


def _call(name: str, *arguments: Any) -> None:
    status = getattr(library(), name)(*arguments)
    if status != 0:
        raise ToolchainError(
            f"{name} failed: {_name(status)}", hint="reinstall NVRTC: pip install --force-reinstall nvidia-cuda-nvrtc"
        )


def _name(status: int) -> str:
    tell = library().nvrtcGetErrorString
    tell.restype = c_char_p
    told: bytes = tell(status)
    return told.decode()

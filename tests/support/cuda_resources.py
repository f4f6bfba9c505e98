"""Kernels for CUDA within the limits of a thread and of a block, by what NVRTC tells of their machine code."""

from __future__ import annotations

import onnx
import pytest

from weft.codegen.cuda import backend
from weft.codegen.cuda.nvrtc import Cubin, compile_cubin
from weft.codegen.cuda.resources import Resources
from weft.driver.build import build
from weft.driver.options import CompileOptions

MOST_REGISTERS, MOST_SHARED, MOST_SPILLS = 255, 48 << 10, 64
"""The limits of a thread and of a block, and the bytes of spilled registers that no kernel takes more than."""


def check_resources(model: onnx.ModelProto, arch: str, patch: pytest.MonkeyPatch, precision: str = "model") -> None:
    """Fails unless all kernels of a model, scheduled and compiled for an architecture such as `sm_90`, are within the limits."""
    taken: dict[str, Resources] = {}

    def recorded(text: str, of: str) -> Cubin:
        made = compile_cubin(text, of)
        taken.update(made.resources)
        return made

    with patch.context() as within:
        within.setattr(backend, "compile_cubin", recorded)
        build(model, f"cuda -arch={arch}", CompileOptions(precision=precision), cache=None)
    assert taken
    beyond = [
        f"{name}: {r}"
        for name, r in taken.items()
        if r.registers > MOST_REGISTERS or r.shared > MOST_SHARED or r.spills > MOST_SPILLS
    ]
    assert not beyond, f"for {arch}: {beyond}"

"""Tests of devices: they are left out where there is none, but for CI, which installs OpenCL and Vulkan on the processor."""

from __future__ import annotations

import os
import shutil

import pytest

from weft.codegen.cuda.nvrtc_library import library_path
from weft.runtime.devices import device_names

EXPECTED = "WEFT_TEST_DEVICES"
"""Set to anything, this variable has tests fail for want of a device."""


def _needs(language: str, name: str) -> pytest.MarkDecorator:
    missing = not os.environ.get(EXPECTED) and not device_names(language)
    return pytest.mark.skipif(missing, reason=f"there is no device with {name}")


needs_opencl = _needs("opencl", "OpenCL")
needs_webgpu = _needs("wgsl", "WebGPU")
needs_nvrtc = pytest.mark.skipif(
    library_path() is None and not os.environ.get(EXPECTED), reason="NVRTC is not installed: pip install '.[cuda]'"
)
"""The compiler of CUDA C++, which needs no device."""

needs_clang = pytest.mark.skipif(
    shutil.which("clang++") is None and not os.environ.get(EXPECTED), reason="Clang is not installed: apt install clang"
)
"""It checks kernels for Metal, whose compiler is a Clang."""

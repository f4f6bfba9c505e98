"""Tests of devices: they are left out where there is none, but for CI, which installs OpenCL on the processor, and says so."""

from __future__ import annotations

import os

import pytest

from weft.codegen.cuda.nvrtc_library import library_path
from weft.runtime.devices import device_names

EXPECTED = "WEFT_TEST_DEVICES"
"""Set to anything, this variable has tests fail for want of a device."""

needs_opencl = pytest.mark.skipif(
    not device_names("opencl") and not os.environ.get(EXPECTED), reason="there is no device with OpenCL"
)

needs_nvrtc = pytest.mark.skipif(
    library_path() is None and not os.environ.get(EXPECTED), reason="NVRTC is not installed: pip install '.[cuda]'"
)
"""The compiler of CUDA C++, which needs no device."""

"""Tests of devices: they are left out where there is none, but not in CI, which installs OpenCL on the processor."""

from __future__ import annotations

import os

import pytest

from weft.runtime.devices import device_names

needs_opencl = pytest.mark.skipif(
    not device_names("opencl") and not os.environ.get("CI"), reason="there is no device with OpenCL"
)

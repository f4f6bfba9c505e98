"""Devices with OpenCL, as facts: the target `opencl` is this machine's device, `opencl -device=any` the least that all have."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.runtime.devices import OpenCLDeviceFacts, opencl_devices
from weft.support.errors import InputError
from weft.targets.grid_machines import OPENCL
from weft.targets.records import Caches
from weft.targets.scopes import CPU_SCOPES
from weft.targets.target import Target

ANY: Final = "any"

_FLOAT_BITS: Final = 32
_REGISTERS: Final = 16
"""Vectors that the cores of any processor with vectors of several floats keep; OpenCL does not tell."""

_LONGEST: Final = 16
"""Lanes of the longest vectors that the language has."""


def opencl(device: str | None = None) -> Target:
    """Returns the target of this machine's device; of any device, where *device* is "any" or there is none here.

    A device that keeps the memory of a block where all other memory is, and computes with vectors, runs blocks on cores: the
    threads of one would be a loop. Raises `InputError` for another *device*.
    """
    if device not in (None, ANY):
        raise InputError(
            f"there is no OpenCL device {device!r}", hint="use opencl for this machine's, or opencl -device=any"
        )
    found = next(iter(opencl_devices()), None) if device is None else None
    return OPENCL if found is None else target_of(found)


def target_of(found: OpenCLDeviceFacts) -> Target:
    """Returns the target of a device."""
    if found.vector_floats == 1 or not found.shares_in_global:
        return OPENCL
    caches = Caches()
    return OPENCL.having(
        vector_bits=found.vector_floats * _FLOAT_BITS,
        vector_registers=_REGISTERS,
        longest_vector=_LONGEST,
        scopes=CPU_SCOPES,
        cores=found.units,
        caches=replace(caches, line=found.cache_line or caches.line, l3=max(caches.l2, found.cache_bytes)),
    )

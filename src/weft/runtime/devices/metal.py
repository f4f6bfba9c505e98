"""Devices with Metal: Weft makes their kernels, and has no runtime that loads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.runtime.devices.device import Device
from weft.support.errors import ToolchainError

MISSING: Final = "Weft has no runtime for Metal"
INSTALL: Final = (
    "use the target webgpu, which runs on a Mac's GPU by way of Metal; or write the kernels' source, "
    "weft.build(model, 'metal').package.kernel_source, for a program of your own"
)


def names() -> list[str]:
    """Returns none: a Mac's devices are not looked for, since nothing could be run on them."""
    return []


def refuse(source: str, kernels: Sequence[str], binaries: Sequence[bytes]) -> Device:
    """Raises `ToolchainError` with the remedy."""
    raise ToolchainError(MISSING, hint=INSTALL)

"""The processor of this machine."""

from __future__ import annotations

import platform


def machine() -> str:
    """Returns the processor's architecture, such as `x86_64` or `aarch64`."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)

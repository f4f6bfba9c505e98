"""What the processor of this machine is and has."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


def machine() -> str:
    """Returns the processor's architecture, such as `x86_64` or `aarch64`."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@cache
def features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str] | None:
    """Returns the processor's features by their plain names (`avx512vnni`), or None where the system does not tell."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            return frozenset(map(plain, value.split()))
    return None


def plain(feature: str) -> str:
    """Returns a feature's name without the punctuation that LLVM and Linux set differently (`sse4.1`, `sse4_1`)."""
    return feature.replace("_", "").replace(".", "").replace("-", "").lower()


def missing_features(needed: tuple[str, ...]) -> list[str]:
    """Returns those of *needed* that this processor lacks; none where the system does not tell."""
    here = features()
    return [] if here is None else [name for name in needed if plain(name) not in here]

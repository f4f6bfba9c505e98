"""The host machine: its architecture, features, CPU model, caches and page size."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from weft.native import _rt

_ALIASES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_CACHE: Final = Path("/sys/devices/system/cpu/cpu0/cache")


@cache
def machine_name() -> str:
    """Returns the architecture of this process, such as `x86_64`, as the first word of a triple has it."""
    told = platform.machine().lower()
    return _rt.MACHINE or _ALIASES.get(told, told)


@cache
def host_flags() -> frozenset[str]:
    """Returns Linux's names for this processor's features, as the loader of saved models finds them."""
    return frozenset(_rt.features())


@cache
def cpuinfo() -> dict[str, str]:
    """Returns the description of the processor, by the names of the fields of /proc/cpuinfo."""
    vendor, family, model = _rt.processor()
    flags = " ".join(sorted(host_flags()))
    return {"vendor_id": vendor, "cpu family": str(family), "model": str(model), "flags": flags}


def processor_name() -> str:
    """Returns the name that the processor has in /proc/cpuinfo, such as "AMD EPYC"; empty where there is none."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return ""


@cache
def cache_sizes() -> dict[int, int]:
    """Returns the bytes of each level of data cache that the first core sees, by level; empty where the system is silent."""
    found = {}
    for folder in sorted(_CACHE.glob("index*")):
        kind, level, size = [_read(folder / n) for n in ("type", "level", "size")]
        if kind != "Instruction":
            found[int(level)] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def page_size() -> int:
    """Returns the bytes of a page of memory."""
    return os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def usable_cores() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

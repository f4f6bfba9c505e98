"""The registers, shared memory and stack of a kernel, as reported by NVIDIA's assembler (ptxas).

ptxas info    : Compiling entry function 'f' for 'sm_90'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 1024 bytes smem
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ENTRY: Final = re.compile(r"Compiling entry function '(\w+)'")
_STACK: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED: Final = re.compile(r"Used (\d+) registers(.*)")
_SHARED: Final = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """Registers per thread, bytes of shared memory per block, bytes of stack per thread, and of these, spilled registers."""

    registers: int = 0
    shared: int = 0
    stack: int = 0
    spills: int = 0


def read_resources(log: str) -> dict[str, Resources]:
    """Returns the resources of each kernel, by its name in the code."""
    found: dict[str, Resources] = {}
    name, stack, spills = "", 0, 0
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            name, stack, spills = entry[1], 0, 0
        elif told := _STACK.search(line):
            stack, spills = int(told[1]), max(int(told[2]), int(told[3]))
        elif (used := _USED.search(line)) and name:
            shared = _SHARED.search(used[2])
            found[name] = Resources(int(used[1]), int(shared[1]) if shared else 0, stack, spills)
            name = ""
    return found

"""What the compiler knows of a machine: a `Target` is a frozen record of facts, and no pass asks for a backend by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from weft.targets.scopes import CPU_SCOPES, Scope

PORTABLE: Final = frozenset({"abs", "copysign", "is_nan", "is_inf", "sqrt", "unlikely", "watched"})
"""The pure functions that every target computes with a few instructions of its own, or, as `unlikely`, with none."""

ROUNDING: Final = frozenset({"floor", "ceil", "trunc", "round_even"})


PAGE: Final = 4096
"""Bytes of a page of memory. Caches find their sets by the part of an address that pages leave alone."""


@dataclass(frozen=True)
class Unit:
    """A unit of a machine that runs instructions of its own, in their order, beside the other units (decoupled access-execute).

    It runs the tensor instructions named in `instructions`, and plain assignments to memory of the scopes that it `fills`, or
    from memory of those that it `empties`; each is run by the first unit of the target that can. What passes between units waits
    for tokens, see `loop.intrinsics`.
    """

    name: str
    instructions: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    empties: tuple[str, ...] = ()


@dataclass(frozen=True)
class ThreadFacts:
    """How a machine runs the threads of a grid, where it has one.

    `warp` threads run in step and touch memory together: global memory in sectors of `sector` bytes, shared memory in `banks`
    banks, each of which gives one word of `bank_bytes` bytes at a time.
    """

    warp: int = 32
    sector: int = 32
    banks: int = 32
    bank_bytes: int = 4
    block: int = 1024


@dataclass(frozen=True)
class Target:
    """The facts of a machine that schedules, lowering and code generation depend on; sizes are in bytes.

    `native` names the functions of `ir.intrinsics` that the machine computes itself; all others are expanded before code
    generation. `features` are LLVM's, each with its sign, sorted; `tune` is LLVM's name for the processor whose timing
    is assumed. `units` are those among which lowering is to divide a program; most machines divide their work themselves.
    `l2_speed`, `l3_speed` and `memory_speed` are the bytes that one core reads in a cycle of its second and third level of
    cache and of memory. `read_ahead` is how many bytes ahead of a long sequential read a program does well to ask for memory,
    0 where the machine does so itself; `read_ahead_uses` is how often it must use what it reads for that.
    """

    name: str
    triple: str
    cpu: str
    tune: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    fma: bool
    fma_per_cycle: int
    masked_memory: bool
    l1: int
    l2: int
    l3: int
    cache_line: int
    cores: int
    native: frozenset[str]
    l2_speed: float = 48.0
    l3_speed: float = 24.0
    memory_speed: float = 8.0
    read_ahead: int = 0
    read_ahead_uses: int = 1
    scopes: tuple[Scope, ...] = CPU_SCOPES
    threads: ThreadFacts | None = None
    units: tuple[Unit, ...] = ()

    @property
    def mask_registers(self) -> bool:
        """Whether masks have registers of their own, as in AVX-512, and need none of those for vectors."""
        return self.masked_memory and self.vector_bits >= 512

    def scope(self, name: str) -> Scope | None:
        """Returns the memory called *name*, None if the machine has none."""
        return next((s for s in self.scopes if s.name == name), None)

    def lanes(self, bits: int) -> int:
        """Returns how many elements of *bits* bits a vector register holds."""
        return max(1, self.vector_bits // bits)

    def has(self, feature: str) -> bool:
        """Tells whether LLVM's *feature* is switched on."""
        return f"+{feature}" in self.features

    def fingerprint(self) -> str:
        """Returns all facts as one line of text, for the keys of caches."""
        return ";".join([f"{f.name}={_fact(getattr(self, f.name))}" for f in fields(self)])


def _fact(value: object) -> str:
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join([str(x) for x in value])
    return str(value)

"""What the compiler knows of a machine: a `Target` is a frozen record of facts, and no pass asks for a backend by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

PORTABLE: Final = frozenset({"abs", "copysign", "is_nan", "is_inf", "sqrt"})
"""The pure functions that every target computes with a few instructions of its own."""

ROUNDING: Final = frozenset({"floor", "ceil", "trunc", "round_even"})


@dataclass(frozen=True)
class Target:
    """The facts of a machine that schedules, lowering and code generation depend on; sizes are in bytes.

    `native` names the functions of `ir.intrinsics` that the machine computes itself; all others are expanded before code
    generation. `features` are LLVM's, each with its sign, sorted; `tune` is LLVM's name for the processor whose timing
    is assumed.
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
    scopes: tuple[str, ...] = ("global", "local", "register")

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
        return ",".join(value)
    return str(value)

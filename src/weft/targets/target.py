"""The facts about a machine: a `Target` is a frozen record, which passes ask instead of naming a backend."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from weft.support.dtypes import DType, f32, f64
from weft.targets.records import Caches, Core, Grid, Isa, Unit
from weft.targets.scopes import CPU_SCOPES, Scope

PORTABLE: Final = frozenset({"abs", "copysign", "is_nan", "is_inf", "sqrt", "unlikely", "watched"})
"""The pure functions that every target computes with a few instructions of its own, or, as `unlikely`, with none."""

ROUNDING: Final = frozenset({"floor", "ceil", "trunc", "round_even"})

EXTREMA: Final = frozenset({"max_number"})
"""The functions of targets whose larger of two numbers is one instruction, but several where a NaN is to win."""

EXPONENTIALS: Final = frozenset({"exp", "exp2", "exp2_flushed", "exp_flushed"})
"""Functions of targets with an instruction for powers of two: off by two units in the last place of float32 at most."""

TF32: Final = frozenset({"round_tf32"})
"""Functions of targets with an instruction that converts to tf32, ties to even: `cvt.rn.tf32` of sm_90. That of sm_80 takes four
(`cvt.rna.tf32` for sm_90, too), and has ties away from zero."""

REASSOCIATED: Final = frozenset({"rounded"})
"""Functions of targets whose compilers may reassociate sums of floats: such a compiler sees `rounded` as an opaque function."""

Kind: TypeAlias = Literal["cpu", "grid", "unit"]
"""The kinds of targets, by which schedules and passes are chosen: cores with vectors, a grid of threads, or cores with units."""


@dataclass(frozen=True)
class Target:
    """The facts of a machine that schedules, lowering and code generation depend on.

    `backend` is the key of `codegen.backends.BACKENDS`, empty where no code can be made. `cores` are those that share a
    parallel loop. `scopes` are the memories that programs may name. A target has a `grid` where its kind is "grid". `units`
    are those among which lowering is to divide a program; most machines divide their work themselves. A target of a device may
    have the host's `processor` beside it, which runs the kernels that are placed there.
    """

    name: str
    kind: Kind
    backend: str
    isa: Isa
    core: Core = field(default_factory=Core)
    caches: Caches = field(default_factory=Caches)
    cores: int = 1
    scopes: tuple[Scope, ...] = CPU_SCOPES
    grid: Grid | None = None
    units: tuple[Unit, ...] = ()
    processor: Target | None = None

    @property
    def title(self) -> str:
        """The name, with that of the processor beside a device."""
        return self.name if self.processor is None else f"{self.name}+{self.processor.name}"

    @cached_property
    def alone(self) -> Target:
        """The device without the processor beside it."""
        return self if self.processor is None else replace(self, processor=None)

    def scope(self, name: str) -> Scope | None:
        """Returns the memory called *name*, None if the machine has none."""
        return next((s for s in self.scopes if s.name == name), None)

    def lanes(self, bits: int) -> int:
        """Returns how many elements of *bits* bits a vector register holds."""
        return max(1, min(self.isa.vector_bits // bits, self.isa.longest_vector or self.isa.vector_bits))

    @property
    def has_threads(self) -> bool:
        """Whether blocks of a grid have threads that share memory; else one core with vectors runs each, as a task of a CPU."""
        return self.kind == "grid" and (self.scope("shared") is not None or self.lanes(32) == 1)

    def access_lanes(self, bits: int) -> int:
        """Returns how many elements of *bits* bits that lie side by side a core or a thread loads at once."""
        return self.lanes(bits) if self.grid is None else max(self.lanes(bits), self.grid.access_bits // bits)

    def has_atomics(self, dtype: DType) -> bool:
        """Tells whether threads can update one element of a type at once, each by an atomic operation."""
        is_number = dtype.is_int or (dtype.is_float and dtype in (f32, f64))
        return self.grid is not None and is_number and 32 <= dtype.bits <= self.grid.atomic_bits

    def has(self, feature: str) -> bool:
        """Tells whether LLVM's *feature* is switched on."""
        return f"+{feature}" in self.isa.features

    @property
    def most_buffers(self) -> int | None:
        """The most buffers that a kernel takes; None where that is no limit."""
        return None if self.grid is None else self.grid.buffers

    @property
    def most_bytes(self) -> int | None:
        """The most bytes of a buffer of known size, whose places are indices and whose parts are buffers; None for no limit."""
        grid = self.grid
        if grid is None or grid.buffer_bytes is None or grid.buffers is None:
            return None
        return min(grid.buffer_bytes * grid.buffers, (1 << grid.index_bits - 1) - 1)

    def having(self, **facts: Any) -> Target:
        """Returns the target with other *facts*, each by its name in `Isa`, `Core`, `Caches` or the target itself.

        Raises `TypeError` for an unknown fact.
        """
        for name in ("isa", "core", "caches"):
            record = getattr(self, name)
            mine = {f.name: facts.pop(f.name) for f in fields(record) if f.name in facts}
            if mine:
                facts[name] = replace(record, **mine)
        return replace(self, **facts)

    def fingerprint(self) -> str:
        """Returns all facts as one line of text, for the keys of caches."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        """The text, which every kernel's key asks for."""
        return _facts(self)


def _facts(record: Any) -> str:
    return ";".join([f"{f.name}={_fact(getattr(record, f.name))}" for f in fields(record)])


def _fact(value: object) -> str:
    if is_dataclass(value):
        return f"({_facts(value)})"
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join([_fact(x) for x in value])
    return str(value)

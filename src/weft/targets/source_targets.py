"""Targets that are no machine: C source for any compiler, and no code at all."""

from __future__ import annotations

from typing import Final

from weft.targets.records import Caches, Core, Isa
from weft.targets.target import PORTABLE, ROUNDING, Target

_CACHES: Final = Caches(l1=16 << 10, l2=128 << 10, l3=128 << 10)
"""The assumed caches of an unknown machine; tiles that fit them fit larger ones."""

C: Final = Target(
    name="c",
    kind="cpu",
    backend="c",
    isa=Isa(language="c", vector_bits=8, vector_registers=16, native=PORTABLE | ROUNDING),
    core=Core(fma_per_cycle=1),
    caches=_CACHES,
)
"""C99 with loops over scalars. A vector of 8 bits holds one element of any type."""

C_VECTOR: Final = C.having(name="c-vector", vector_bits=128, features=("+vector_extensions",))
"""C99 with the vector types of GCC and Clang, four floats each."""

NULL: Final = Target(
    name="null",
    kind="cpu",
    backend="null",
    isa=Isa(vector_bits=128, vector_registers=16, native=PORTABLE | ROUNDING),
    caches=_CACHES,
)
"""A machine that nothing runs on, to try the compiler with."""

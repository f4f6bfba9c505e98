"""OpenCL C's words for threads, their memories, and barriers."""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.codegen.c_family.c_types import literal
from weft.codegen.c_family.dialect import C_KEYWORDS, Dialect
from weft.codegen.c_family.thread_statements import UPDATES, ThreadWords, thread_statements
from weft.codegen.opencl.opencl_vectors import OWN, TYPES, VECTORS
from weft.loop import BARRIER
from weft.targets import Sight, sight_of

_SPACES: Final = {Sight.GRID: "global ", Sight.BLOCK: "local ", Sight.THREAD: ""}
_KEYWORDS: Final = """
kernel global local constant private read_only write_only read_write pipe half complex imaginary uchar ushort uint ulong event_t
barrier get_group_id get_local_id
"""
"""Keywords of OpenCL C beside C's (version 1.2, section 6.9), and the functions that kernels call."""

_NUMBERS: Final = {"blockIdx": "get_group_id", "threadIdx": "get_local_id"}


def address_space(scope: str) -> str:
    """Returns the words for the memory of a scope, such as `global `."""
    return _SPACES[sight_of(scope)]


WORDS: Final = ThreadWords(
    number=lambda kind, axis: f"{_NUMBERS[kind]}({'xyz'.index(axis)})",
    shared=_SPACES[Sight.BLOCK],
    own=OWN,
    barriers={BARRIER: "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"},
    calls=UPDATES,
)
OPENCL: Final = Dialect(
    name="OpenCL C",
    statements=thread_statements(WORDS),
    address_space=address_space,
    square_roots={32: "sqrt", 64: "sqrt"},
    literal=partial(literal, wide="l"),
    keywords=frozenset((C_KEYWORDS + _KEYWORDS).split()) | TYPES,
    vectors=VECTORS,
)
"""OpenCL C 1.2."""

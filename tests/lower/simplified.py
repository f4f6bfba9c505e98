"""Passes that leave much to simplify, each with that done, so that the texts of their tests are short."""

from __future__ import annotations

from weft.loop import Program
from weft.lower.cleanup.simplify_program import simplify_program
from weft.lower.loops.partition_loops import partition_loops
from weft.lower.loops.vectorize import vectorize
from weft.targets import cpu

AVX512 = cpu("avx512")


def vectorized(program: Program) -> Program:
    """Returns *program* vectorized for `AVX512`, and simplified."""
    return simplify_program(vectorize(program, AVX512))


def partitioned(program: Program) -> Program:
    """Returns *program* with its loops partitioned, and simplified."""
    return simplify_program(partition_loops(program, AVX512))

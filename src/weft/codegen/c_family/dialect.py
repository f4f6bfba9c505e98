"""A dialect of the C family: the facts and writers in which one language differs from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from weft.codegen.c_family.c_types import literal
from weft.codegen.c_family.vector_words import MemoryVectors, VectorWords
from weft.ir import Expr, Value
from weft.loop import Buffer, Stmt
from weft.support.dtypes import DType

StatementWriter: TypeAlias = Callable[[Any, Any], None]
"""Writes a statement, the second argument, with the `Writer` that is the first."""

ExpressionWriter: TypeAlias = Callable[[Any, Any], Any]
"""Returns an expression, the second argument, as a `Value` of the `Writer` that is the first."""

C_KEYWORDS: Final = """
asm auto bool break case char const continue ctx default do double else enum extern false float for goto if inline int long main
register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile while
"""

C_TYPES: Final = """
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t INFINITY INT32_MIN INT64_MIN
"""
"""Names of types and numbers that printed programs use."""

CXX_KEYWORDS: Final = """
alignas alignof and catch class constexpr decltype delete explicit export friend mutable namespace new not noexcept nullptr
operator or private protected public template this throw try typeid typename using virtual xor
"""
"""Keywords of C++ beside C's."""


def c_constant(kind: str, name: str, value: str) -> str:
    """Returns the declaration of a name for a value of the type *kind* in C."""
    return f"const {kind} {name} = {value};"


@dataclass(frozen=True)
class Dialect:
    """A language: its name in messages, and its own parts.

    `statements` are the writers of statements, by type. `address_space` gives the words before the type of a pointer to memory
    of a scope, with a space after them. `square_roots` are the names of that function by the bits of its argument, and `header`
    the header that declares it. `watched_argument` is the first argument of the helper that watches a range; without one,
    values are clamped to the range without a report. `expressions` are the writers of expressions, by type, where they are
    not those of C; `constant` declares a name for a value, `literal` writes a number, and `keywords` can't be names.
    `vectors` are the words for vectors, and `memory_vectors` for those that are only loaded and stored, where there are such.
    """

    name: str
    statements: Mapping[type[Stmt], StatementWriter]
    address_space: Callable[[str], str]
    square_roots: Mapping[int, str]
    header: str | None = None
    watched_argument: str | None = None
    expressions: Mapping[type[Expr], ExpressionWriter] | None = None
    constant: Callable[[str, str, str], str] = c_constant
    literal: Callable[[Value, DType], str] = literal
    keywords: frozenset[str] = frozenset(C_KEYWORDS.split())
    vectors: VectorWords | None = None
    memory_vectors: MemoryVectors | None = None
    piece: Callable[[Any, Buffer, str], str] | None = None

    @cached_property
    def reserved(self) -> frozenset[str]:
        """The names that variables can't have: keywords, and names of the language that the program uses."""
        return self.keywords | {*C_TYPES.split(), *self.square_roots.values()}

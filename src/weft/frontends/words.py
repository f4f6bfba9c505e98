"""Texts taken apart into words, or letters."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.regular_expressions import compile_pattern
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.ir import ExprLike
from weft.support.dtypes import i64

WORD: Final = r"[^\t-\r ]+"
"""A word: characters between white space, which is ASCII's."""

LETTER: Final = "(?s)."
"""One character, be it a line break."""


def words(
    b: Builder, pool: Operand, x: Operand, pattern: str, length: int | None = None, least: int = 0
) -> tuple[Operand, Operand]:
    """Returns how many parts of each text [batch] match a pattern, and these parts [batch, parts], behind them "".

    A row has *length* of them, or as many as the text with the most has, and at least *least*.
    """
    code = compile_pattern(pattern)
    program = CompileTimeConstant(np.asarray([len(code), *code], np.int32))
    how = (1, 1, 0, -1, -1)
    counts = b.add("string_token_counts", x, program, pool, how=how)
    width: ExprLike
    if length is None:
        most = b.add("reduce_max", counts, axes=(0,), keepdims=False)
        most = b.add("maximum", most, b.scalar(least, i64)) if least else most
        width = b.late_number(most, "words", "the number of words of a text")
    else:
        width = length
    return counts, b.add("string_tokens", x, program, pool, how=how, width=width)

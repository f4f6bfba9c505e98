"""ONNX Runtime's `Tokenizer`, with which scikit-learn's vectorizers of text begin."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.onnx.call import Call, HeldResults
from weft.frontends.onnx.contrib import contrib
from weft.frontends.onnx.string_pool import MARKS
from weft.frontends.regular_expressions import compile_pattern
from weft.frontends.string_ids import Strings
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.support.dtypes import i64
from weft.support.errors import WeftError

_MOST_SEPARATORS: Final = 64
_CHARACTER: Final = "(?s)."
"""Finds the tokens where the one separator is "", or the expression ".": each character is one, line breaks among them."""


@contrib(
    "Tokenizer",
    inputs=(1, 1),
    attributes={"mark": int, "mincharnum": int, "pad_value": str, "separators": list, "tokenexp": str},
    needed=("mark", "mincharnum", "pad_value"),
    holds=True,
    limits="scripts in regular expressions, and \\C",
)
def tokenizer(c: Call) -> HeldResults:
    """The tokens of each string, as many as the string with the most has, and `pad_value` behind those of the others."""
    found, least = c.held[0], c.integer("mincharnum", 1)
    if not isinstance(found, Strings) or found.ids.rank not in (1, 2):
        c.fail(f"its input 0 should be a vector or a matrix of strings: {found!r}", UNFIT)
    if least < 1:
        c.fail(f"its attribute 'mincharnum' is {least}", "give a token at least one character")
    patterns, finds = _patterns(c)
    words = [w for pattern in patterns for w in _program(c, pattern)]
    programs = CompileTimeConstant(np.asarray(words, np.int32))
    first, last = c.strings.of(MARKS) if c.flag("mark", False) else (-1, -1)
    how = (int(finds), least, c.strings.ids[c.text("pad_value", "")], first, last)
    x = c.kept(found.ids)
    counts = c.add("string_token_counts", x, programs, c.strings.constant, how=how)
    most = c.add("reduce_max", counts, axes=tuple(range(x.rank)), keepdims=False)
    if c.flag("mark", False):  # they stand where any string has a token
        most = c.add("where", c.add("equal", most, c.scalar(len(MARKS), i64)), c.scalar(0, i64), most)
    width = c.late_number(most, "tokens", "the number of tokens of a string")
    return Strings(c.add("string_tokens", x, programs, c.strings.constant, how=how, width=width))


def _patterns(c: Call) -> tuple[list[str], bool]:
    """Returns regular expressions, and whether they find tokens instead of separating them."""
    separators, token = c.attributes.get("separators"), c.text("tokenexp", "")
    if bool(separators) == bool(token):
        c.fail("it should have one of the attributes 'separators' and 'tokenexp'", UNFIT)
    if token == "." or separators == [""]:
        return [_CHARACTER], True
    if not separators:
        return [token], True
    if len(separators) > _MOST_SEPARATORS:
        c.fail(f"it has {len(separators)} separators", f"join some with |: Weft has at most {_MOST_SEPARATORS}")
    return separators, False


def _program(c: Call, pattern: str) -> list[int]:
    """Returns a regular expression as a program behind the number of its words."""
    try:
        made = compile_pattern(pattern)
    except WeftError as error:
        c.fail(error.message, error.hint)
    return [len(made), *made]

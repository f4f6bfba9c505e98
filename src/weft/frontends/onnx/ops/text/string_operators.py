"""Operators on strings alone: joined, split, normalised, matched, and converted to numbers and back."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from weft.frontends.onnx.call import Call, HeldResults, Operand
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.registry import translates, translates_strings
from weft.frontends.regular_expressions import compile_pattern
from weft.frontends.string_ids import Strings, in_case
from weft.graph import UNFIT
from weft.graph.builder import CompileTimeConstant
from weft.graph.composites.selection import compress, first_true
from weft.graph.composites.sequences import concat
from weft.ir import as_expr, eq
from weft.ops import same_size
from weft.support.dtypes import DType, bool_, f32, f64, i64, u64
from weft.support.errors import WeftError

_CASES: Final = ("LOWER", "UPPER", "NONE")


def _ids(c: Call, i: int) -> Operand:
    """Returns the ids of input *i*; raises `ModelError` where it is no tensor of strings."""
    found = c.held[i] if i < len(c.held) else None
    if not isinstance(found, Strings):
        return c.fail(f"its input {i} should be a tensor of strings: {found!r}", UNFIT)
    return found.ids


def _on_host(c: Call, op: str, *operands: Operand, **attributes: object) -> Operand:
    return c.add(op, *operands, c.strings.constant, **attributes)


@translates("StringConcat", holds=True)
def string_concat(c: Call) -> HeldResults:
    """Strings with others behind them, broadcast as numbers are."""
    x, y = (c.kept(_ids(c, i)) for i in range(2))
    if x.rank != y.rank or not all(map(same_size, x.shape, y.shape)):
        zero = c.scalar(0, i64)
        x, y = c.add("add", x, c.add("mul", y, zero)), c.add("add", y, c.add("mul", x, zero))
    return Strings(_on_host(c, "string_concat", x, y))


@translates("StringSplit", holds=True)
def string_split(c: Call) -> HeldResults:
    """The parts of strings between delimiters or white space, as many as the string with the most has, and their numbers."""
    x = c.kept(_ids(c, 0))
    options = {"delimiter": c.strings.ids[c.text("delimiter", "")], "most": c.integer("maxsplit", -1)}
    counts = _on_host(c, "string_part_counts", x, **options)
    most = c.add("reduce_max", counts, axes=tuple(range(x.rank)), keepdims=False) if x.rank else counts
    width = c.late_number(most, "parts", "the number of parts of a string")
    return Strings(_on_host(c, "string_split", x, width=width, **options)), counts


@translates("StringNormalizer", holds=True, limits="locales: letters change case as Unicode has it without one")
def string_normalizer(c: Call) -> HeldResults:
    """Strings without those that are stopwords, in lower case or capitals; "" where none is left."""
    ids, action = c.kept(_ids(c, 0)), c.text("case_change_action", "NONE")
    if action not in _CASES or ids.rank not in (1, 2):
        c.fail(
            f"its attribute 'case_change_action' is {action!r}, and its input {ids!r}",
            f"use one of {', '.join(_CASES)}",
        )
    rows = ids.rank == 2
    if rows and not same_size(ids.shape[0], as_expr(1)):
        c.fail(f"it takes one row of strings, not {ids!r}", UNFIT)
    x = c.reshape(ids, (ids.shape[1],)) if rows else ids
    stopwords = list(c.attributes.get("stopwords", ()))
    if stopwords:
        x = _without(c, x, stopwords)
    if action != "NONE":
        x = _on_host(c, "string_case", x, upper=action == "UPPER")
    return Strings(c.reshape(x, (1, x.shape[0])) if rows else x)


def _without(c: Call, x: Operand, stopwords: list[str]) -> Operand:
    """Returns the strings that are no stopwords, or "" where all are."""
    compared = x
    if not c.flag("is_case_sensitive", False):
        compared, stopwords = _on_host(c, "string_case", x, upper=False), [in_case(w, upper=False) for w in stopwords]
    words = CompileTimeConstant(np.asarray(c.strings.of(stopwords), np.int64))
    is_one = c.add("equal", c.reshape(compared, (x.shape[0], 1)), words)
    count = c.add("reduce_sum", c.cast(is_one, i64), axes=(1,), keepdims=False)
    keep = c.add("equal", count, c.scalar(0, i64))
    kept = c.add("reduce_sum", c.cast(keep, i64), axes=(0,), keepdims=True)
    empty = c.add("equal", kept, c.scalar(0, i64))
    return compress(c, concat(c, [x, CompileTimeConstant(np.zeros(1, np.int64))], 0), concat(c, [keep, empty], 0), 0)


@translates("RegexFullMatch", holds=True, limits="what no automaton can match: see `docs/design/0053`")
def regex_full_match(c: Call) -> HeldResults:
    """Whether a pattern in RE2's syntax describes a string as a whole."""
    try:
        program = compile_pattern(c.text("pattern", ""))
    except WeftError as error:
        c.fail(error.message, error.hint)
    words = CompileTimeConstant(np.asarray(program, np.int32))
    return c.add("string_match", c.kept(_ids(c, 0)), words, c.strings.constant)


@translates_strings("Cast", "CastLike")
def cast(c: Call) -> HeldResults:
    """Numbers as strings, and strings as numbers."""
    if c.node.op_type == "Cast":
        to = c.integer("to", 0)
        target = None if to == TensorProto.STRING else element_type(to, c.source)
    else:
        like = c.held[1]
        target = None if isinstance(like, Strings) else c.input(1).dtype
    found = c.held[0]
    if isinstance(found, Strings):
        return found if target is None else _parsed(c, found.ids, target)
    assert target is None
    return Strings(_on_host(c, "string_format", c.kept(_written(c, c.input(0)))))


def _written(c: Call, x: Operand) -> Operand:
    """Returns numbers as the type that they are written from."""
    if x.dtype in (f32, f64, u64):
        return x
    if x.dtype.is_int:
        return c.cast(x, i64)
    return c.fail(f"numbers of {x.dtype} are not converted to strings", "convert them to float32 or int64 first")


def _parsed(c: Call, ids: Operand, dtype: DType) -> Operand:
    """Returns strings as numbers; calls fail where one is no number, or is too large for the integers."""
    if not (dtype.is_float or dtype.is_int or dtype is bool_):
        c.fail(f"strings are not converted to {dtype}", "convert them to float32 or int64 first")
    read = dtype if dtype in (f32, f64, i64, u64) else f64 if dtype.is_float else i64
    numbers, bad = c.add_many("string_parse", c.kept(ids), c.strings.constant, dtype=read)
    _refuse(c, bad, dtype)
    if dtype.is_int and read is not dtype:
        low, high = (c.scalar(bound, read) for bound in dtype.int_range)
        beyond = c.add("logical_or", c.add("less", numbers, low), c.add("less", high, numbers))
        _refuse(c, first_true(c, beyond), dtype)
    return c.cast(numbers, dtype)


def _refuse(c: Call, bad: Operand, dtype: DType) -> None:
    """Makes calls fail in which *bad* is not 0 but the place of a string, counted from 1."""
    place = as_expr(c.late_number(bad, "unreadable", "the place of a string that is no number"))
    c.require(eq(place, 0), f"string {{0}} of {c.node.input[0]}, counted from 1, is no number of type {dtype}", place)

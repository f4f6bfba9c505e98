"""Strings: looked up in a vocabulary, taken apart into words before, or hashed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.frontends.keras.vocabularies import SAVE_AGAIN, chosen, encoded, frequencies, placed, vocabulary
from weft.frontends.keras.weights import Weights
from weft.frontends.regular_expressions import compile_pattern
from weft.frontends.string_buckets import crossed, hashed
from weft.frontends.string_ids import Strings
from weft.frontends.words import LETTER, WORD, words
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.sequences import concat
from weft.ir import INDEX, ONE, Expr, as_expr
from weft.support.dtypes import f32, i64, u64

_UNKNOWN: Final = "[UNK]"
_PUNCTUATION: Final = r"[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]"
_PATTERNS: Final = {"whitespace": WORD, "character": LETTER}
_STANDARDS: Final = ("lower", "strip_punctuation", "lower_and_strip_punctuation")


@dataclass(frozen=True)
class _Table:
    """A vocabulary's settings: the ids of its tokens, how many numbers stand before them, and for how many unknown tokens."""

    tokens: Any
    first: int
    others: int
    mask: int | None

    @property
    def depth(self) -> int:
        return self.first + len(self.tokens)


def _table(c: Call, weights: Weights, mode: str, others: int, oov: str, mask: str | None) -> _Table:
    c.refuse("sparse", False)
    c.refuse("oov_method", "floormod")
    reserved = int(mask is not None and mode == "int")
    tokens = vocabulary(c, weights, str, oov, reserved + others)
    ids = np.asarray(c.strings.of(tokens), np.int64)
    return _Table(ids, reserved + others, others, None if mask is None else c.strings.ids[mask])


def _looked_up(c: Call, x: Operand, t: _Table) -> Operand:
    """Returns the numbers of strings."""
    before = t.first - t.others
    unknown: Operand = c.scalar(before if t.others else -1, i64)
    if t.others > 1:
        key = c.layer.config.get("salt")
        halves = (int(key[0]), int(key[1])) if isinstance(key, list) and len(key) == 2 else None
        unknown = c.add("add", hashed(c, c.strings.constant, x, t.others, halves), unknown)
    y = placed(c, x, t.tokens, t.first, unknown)
    if t.mask is None:
        return y
    return c.add("where", c.add("equal", x, c.scalar(t.mask, i64)), c.scalar(0, i64), y)


@translates("StringLookup")
def string_lookup(c: Call) -> Any:
    """The numbers of strings in a vocabulary; or (`invert`) the strings of numbers."""
    mode, others = c.text("output_mode", "int"), c.integer("num_oov_indices", 1)
    oov, mask = c.text("oov_token", _UNKNOWN), c.layer.config.get("mask_token")
    t = _table(c, c.weights, mode, others, oov, None if mask is None else c.text("mask_token"))
    if c.flag("invert"):
        y = chosen(c, c.cast(c.tensor(), i64), t.tokens, t.first, c.strings.ids[oov])
        if t.mask is not None:
            y = c.add("where", c.add("equal", c.cast(c.tensor(), i64), c.scalar(0, i64)), c.scalar(t.mask, i64), y)
        return Strings(y)
    y = _looked_up(c, c.ids(), t)
    return y if mode == "int" else _of_bag(c, y, t, mode, c.weights, None)


def _of_bag(c: Call, y: Operand, t: _Table, mode: str, weights: Weights, counted: Operand | None) -> Operand:
    """Returns which tokens there are in a sample, or how often, of those that *counted* says."""
    depth = c.integer("max_tokens", t.depth) if c.flag("pad_to_max_tokens") else t.depth
    if mode != "tf_idf":
        return c.cast(encoded(c, y, mode, depth, counted), i64)
    found = frequencies(c, weights, t.depth, t.others)
    padded = np.pad(found, (0, max(depth - t.depth, 0)))
    return c.add("mul", encoded(c, y, "count", depth, counted), CompileTimeConstant(padded))


@translates("TextVectorization")
def text_vectorization(c: Call) -> Operand:
    """The words of a text as numbers of a vocabulary, a sequence of them, or which of them there are."""
    c.refuse("ragged", False)
    c.refuse("encoding", "utf-8")
    mode, weights = c.text("output_mode", "int"), c.weights.part("lookup_layer")
    t = _table(c, weights, mode, 1, _UNKNOWN, "" if mode == "int" else None)
    x = _standardized(c, c.ids())
    split, grams = c.layer.config.get("split"), _grams(c)
    length = c.integer("output_sequence_length") if c.has("output_sequence_length") else None
    if split is None:
        if grams or length is not None:
            c.fail("it has settings for words, and does not split its texts", 'use split="whitespace"')
        y = _looked_up(c, x, t)
        return y if mode == "int" else _of_bag(c, y, t, mode, weights, None)
    if split not in _PATTERNS:
        c.fail(f"its setting split={split!r} is not supported", "use 'whitespace' or 'character'")
    if x.rank > 1:
        x = c.reshape(x, x.shape[:-1])
    if x.rank != 1:
        c.fail(f"its texts are {x!r}", "give it one text a sample")
    pattern, needed = _PATTERNS[split], length if mode == "int" and not grams else None
    counts, parts = words(
        c, c.strings.constant, x, pattern, needed, int(bool(grams))
    )  # which are joined with one behind
    inside = c.add("less", c.add("range", start=0, size=parts.shape[1], step=1), c.reshape(counts, [x.shape[0], 1]))
    if grams:
        parts, inside, places = _joined_words(c, parts, counts, grams)
    y = _looked_up(c, parts, t)
    if mode != "int":
        return _of_bag(c, y, t, mode, weights, c.cast(inside, f32))
    y = c.add("where", inside, y, c.scalar(0, i64))
    return y if not grams else _packed(c, y, inside, places, counts, grams, length)


def _standardized(c: Call, x: Operand) -> Operand:
    how = c.layer.config.get("standardize")
    if how is None:
        return x
    if how not in _STANDARDS:
        c.fail(f"its setting standardize={how!r} is not supported", f"use one of {', '.join(_STANDARDS)}")
    if how.startswith("lower"):
        x = c.add("string_case_ascii", x, c.strings.constant, upper=False)
    if how.endswith("punctuation"):
        program = CompileTimeConstant(np.asarray(compile_pattern(_PUNCTUATION), np.int32))
        x = c.add("string_replace", x, program, c.strings.constant, by=0, every=True)
    return x


def _grams(c: Call) -> list[int]:
    """Returns how many words are joined; none where each stands for itself."""
    found = c.layer.config.get("ngrams")
    if found is None or found == 1:
        return []
    numbers = [found] if isinstance(found, int) else found
    if not isinstance(numbers, list) or not numbers or not all(isinstance(n, int) and 1 <= n <= 16 for n in numbers):
        c.fail(f"its setting ngrams={found!r} is not supported", "use numbers from 1 to 16")
    return list(range(1, found + 1)) if isinstance(found, int) else numbers


def _joined_words(c: Call, parts: Operand, counts: Operand, grams: Sequence[int]) -> tuple[Operand, Operand, Operand]:
    """Returns the words joined to as many as *grams* says, one after another; which there are, and their places in the row."""
    batch, width = parts.shape
    count = c.reshape(counts, [batch, 1])
    at, last = c.add("range", start=0, size=width, step=1), c.size(width - 1)
    space = c.add("full", shape=parts.shape, value=c.strings.ids[" "], dtype=i64)
    made: list[tuple[Operand, Operand, Operand]] = []
    joined, base = parts, c.add("mul", count, c.scalar(0, i64))
    for n in range(1, max(grams) + 1):
        if n > 1:
            place = c.add("minimum", c.add("add", at, c.scalar(n - 1, i64)), last)
            behind = c.add("gather", parts, place, axis=1)
            joined = c.add("string_concat", joined, space, c.strings.constant)
            joined = c.add("string_concat", joined, behind, c.strings.constant)
        if n not in grams:
            continue
        there = c.add("maximum", c.add("sub", count, c.scalar(n - 1, i64)), c.scalar(0, i64))
        made.append((joined, c.add("less", at, there), c.add("add", at, base)))
        base = c.add("add", base, there)
    tokens, inside, places = (concat(c, parts, 1) for parts in zip(*made, strict=True))
    return tokens, inside, places


def _packed(
    c: Call, y: Operand, inside: Operand, places: Operand, counts: Operand, grams: Sequence[int], length: int | None
) -> Operand:
    """Returns numbers at their places in a row, of *length* or of as many as the longest has."""
    if length is None:
        total: Operand = c.scalar(0, i64)
        for n in grams:
            more = c.add("sub", counts, c.scalar(n - 1, i64))
            total = c.add("add", total, c.add("maximum", more, c.scalar(0, i64)))
        most = c.add("reduce_max", total, axes=(0,), keepdims=False)
        size: Expr = as_expr(c.late_number(most, "groups", "the number of groups of words of a text"), INDEX)
    else:
        size = as_expr(length, INDEX)
    batch, count = y.shape
    row = c.reshape(c.add("range", start=0, size=size, step=1), [1, size, 1])
    is_here = c.add("equal", c.reshape(places, [batch, 1, count]), row)
    is_here = c.add("logical_and", is_here, c.reshape(inside, [batch, 1, count]))
    put = c.add("where", is_here, c.reshape(y, [batch, 1, count]), c.scalar(0, i64))
    return c.add("reduce_sum", put, axes=(2,), keepdims=False)


@translates("Hashing")
def hashing(c: Call) -> Operand:
    """The buckets of strings, or of integers as they are written."""
    c.refuse("sparse", False)
    mode, bins, salt = c.text("output_mode", "int"), c.integer("num_bins"), c.layer.config.get("salt")
    key = None if salt is None else (c.ints("salt", 2)[0], c.ints("salt", 2)[1])
    buckets = bins - 1 if c.has("mask_value") and bins > 1 else bins
    if bins < 1:
        c.fail(f"it has {bins} bins", SAVE_AGAIN)
    y = hashed(c, c.strings.constant, _written(c, c.held()), buckets, key)
    if buckets < bins:
        is_mask = c.add("equal", *_masked(c, c.layer.config["mask_value"]))
        y = c.add("where", is_mask, c.scalar(0, i64), c.add("add", y, c.scalar(1, i64)))
    return y if mode == "int" else encoded(c, y, mode, bins)


def _masked(c: Call, value: Any) -> tuple[Operand, Operand]:
    """Returns elements, and the one that is no value, as numbers of one type."""
    found = c.held()
    if isinstance(found, Strings):
        return found.ids, c.scalar(c.strings.ids[c.text("mask_value")], i64)
    if not isinstance(value, int | float):
        c.fail(f"its setting 'mask_value' is {value!r}, and its input {found!r}", SAVE_AGAIN)
    return found, c.scalar(value, found.dtype)


def _written(c: Call, x: Operand | Strings) -> Operand:
    """Returns the ids of strings, or of integers in decimal digits; floats lose their fractions."""
    if isinstance(x, Strings):
        return x.ids
    whole = x if x.dtype is u64 else c.cast(x, i64)
    return c.add("string_format", whole, c.strings.constant)


@translates("HashedCrossing")
def hashed_crossing(c: Call) -> Operand:
    """The buckets of several features taken together."""
    c.refuse("sparse", False)
    given = c.positional[0] if len(c.positional) == 1 else c.positional
    parts = [_hash_of(c, x) for x in (given if isinstance(given, list | tuple) else [given])]
    if any(p.rank > 2 or (p.rank == 2 and p.shape[1] is not ONE) for p in parts):
        c.fail("its features are not of shape [batch] or [batch, 1]", SAVE_AGAIN)
    bins, mode = c.integer("num_bins"), c.text("output_mode", "int")
    y = crossed(c, parts, bins)
    return y if mode == "int" else encoded(c, y, mode, bins)


def _hash_of(c: Call, x: Any) -> Operand:
    if isinstance(x, Strings):
        return c.add("string_hash", x.ids, c.strings.constant, key=None)
    return c.cast(c.cast(c.operand(x), i64), u64)

"""Operators on strings, which are ids (`string_ids`): looked up, split, hashed, changed, moved and compared."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.regular_expressions import compile_pattern
from weft.frontends.string_buckets import crossed, hashed
from weft.frontends.string_ids import Strings
from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results, Table
from weft.frontends.tensorflow_operators.registry import TABLE, translates, translates_strings
from weft.frontends.words import WORD, words
from weft.graph import Value
from weft.graph.builder import CompileTimeConstant, Operand, total
from weft.graph.composites.selection import true_positions
from weft.graph.composites.sequences import stack
from weft.ir import as_expr
from weft.support.dtypes import i32, i64, u64
from weft.support.errors import WeftError

_MOVES: Final = (
    *("BroadcastTo", "ConcatV2", "ExpandDims", "Fill", "GatherNd", "GatherV2", "Pack", "PadV2"),
    *(
        "RaggedTensorToTensor",
        "Reshape",
        "ReverseV2",
        "Roll",
        "Select",
        "SelectV2",
        "Slice",
        "Split",
        "SplitV",
        "Squeeze",
    ),
    *("StridedSlice", "Tile", "Transpose", "Unpack"),
)


def _on_ids(c: Call) -> Results:
    c.inputs = [x.ids if isinstance(x, Strings) else x for x in c.inputs]
    return TABLE[c.op](c)


@translates_strings(*_MOVES)
def moved(c: Call) -> Results:
    """The strings elsewhere."""
    made = _on_ids(c)
    return tuple([_strings(c, v) for v in (made if isinstance(made, tuple) else (made,))])


def _strings(c: Call, x: object) -> Strings:
    if not isinstance(x, Value | CompileTimeConstant):
        c.fail("its results are no strings", SAVE_AGAIN)
    return Strings(x)


@translates_strings("Equal", "NotEqual", "Rank", "Shape", "ShapeN", "Size")
def asked(c: Call) -> Results:
    """Equality, shapes and sizes of strings: those of their ids."""
    return _on_ids(c)


@translates("LookupTableFindV2")
def lookup(c: Call) -> Results:
    """The values that a table has for keys, and a default for other keys."""
    table = c.inputs[0]
    if not isinstance(table, Table):
        c.fail(f"its table is {table!r}", SAVE_AGAIN)
    held, default = c.inputs[1], c.ids(2) if table.makes_strings else c.tensor(2)
    keys = held.ids if isinstance(held, Strings) else c.tensor(1)
    if not (keys.dtype.is_int and table.keys.dtype.kind in "iu" and len(table.keys)):
        c.fail(f"a table of {len(table.keys)} keys of {table.keys.dtype} is not supported", "use integers or strings")
    order = np.argsort(table.keys, kind="stable")
    keys = c.cast(keys, i64)
    place = c.cast(c.add("find_sorted", keys, CompileTimeConstant(table.keys[order].astype(np.int64))), i64)
    known = c.add("less", place, c.scalar(len(order), i64))
    values = np.append(table.values[order], table.values[:1])
    found = c.add("gather", CompileTimeConstant(np.ascontiguousarray(values)), place, axis=0)
    made = c.add("where", known, found, default)
    return Strings(made) if table.makes_strings else made


@translates("LookupTableSizeV2")
def table_size(c: Call) -> Operand:
    """The number of keys of a table."""
    table = c.inputs[0]
    if not isinstance(table, Table):
        c.fail(f"its table is {table!r}", SAVE_AGAIN)
    return c.scalar(len(table.keys), i64)


@translates("StringLower", "StringUpper")
def in_case(c: Call) -> Results:
    """Strings in another case, of ASCII's letters unless the encoding is UTF-8."""
    op = "string_case" if c.text("encoding", "") else "string_case_ascii"
    return Strings(c.add(op, c.kept(c.ids()), c.strings.constant, upper=c.op == "StringUpper"))


@translates("StaticRegexReplace", "RegexReplace")
def replaced(c: Call) -> Results:
    """Strings with another in the place of matches of a regular expression."""
    static = c.op == "StaticRegexReplace"
    pattern = c.text("pattern") if static else _text(c, 1)
    by = c.text("rewrite") if static else _text(c, 2)
    if "\\" in by:
        c.fail(f"its rewrite {by!r} names parts of what matches", "replace by a text without backslashes")
    if _has_choices(pattern):
        c.fail(
            f"the matches of {pattern!r} are not always the longest ones",
            "use a pattern without | and lazy repetitions",
        )
    program = CompileTimeConstant(np.asarray(_program(c, pattern), np.int32))
    ids, every = c.strings.ids, c.flag("replace_global", True)
    if by not in ids:
        c.fail(f"its rewrite {by!r} is not among the model's strings", SAVE_AGAIN)
    return Strings(c.add("string_replace", c.kept(c.ids()), program, c.strings.constant, by=ids[by], every=every))


def _has_choices(pattern: str) -> bool:
    """Tells whether a pattern may match less than the most that it could: it has alternatives, or lazy repetitions."""
    inside, at = False, 0
    while at < len(pattern):
        letter = pattern[at]
        inside = letter == "[" or (inside and letter != "]")
        if not inside and (letter == "|" or pattern[at : at + 2] in ("*?", "+?", "??", "}?")):
            return True
        at += 2 if letter == "\\" else 1
    return False


def _program(c: Call, pattern: str) -> list[int]:
    try:
        return compile_pattern(pattern)
    except WeftError as error:
        c.fail(error.message, error.hint)


def _text(c: Call, i: int) -> str:
    found = c.ids(i)
    if not isinstance(found, CompileTimeConstant) or found.array.size != 1:
        c.fail(f"its input {i} is not known before the model runs", "make it a constant")
    return list(c.strings.ids)[int(found.array.reshape(-1)[0])]


@translates("StringStrip")
def stripped(c: Call) -> Results:
    """Strings without the white space at their begins and ends."""
    x = c.kept(c.ids())
    for pattern in (r"\A[\t-\r ]+", r"[\t-\r ]+\z"):
        program = CompileTimeConstant(np.asarray(_program(c, pattern), np.int32))
        x = c.add("string_replace", x, program, c.strings.constant, by=0, every=True)
    return Strings(x)


@translates("StaticRegexFullMatch", "RegexFullMatch")
def matched(c: Call) -> Operand:
    """Whether a regular expression describes a string as a whole."""
    pattern = c.text("pattern") if c.op == "StaticRegexFullMatch" else _text(c, 1)
    program = CompileTimeConstant(np.asarray(_program(c, pattern), np.int32))
    return c.add("string_match", c.kept(c.ids()), program, c.strings.constant)


@translates("StringSplitV2", outputs=("indices", "values", "shape"))
def split(c: Call) -> Results:
    """The parts of strings [n] between separators, or white space, as a sparse matrix."""
    x, most, separator = c.kept(c.ids()), c.integer("maxsplit", -1), _text(c, 1)
    if not separator:
        if most >= 0:
            c.fail(f"{most} splits at white space are not supported", "split at all of it, or at a separator")
        counts, parts = words(c, c.strings.constant, x, WORD)
    else:
        options = {"delimiter": c.strings.ids[separator], "most": most}
        counts = c.add("string_part_counts", x, c.strings.constant, **options)
        width = c.late_number(_most(c, counts), "parts", "the number of parts of a string")
        parts = c.add("string_split", x, c.strings.constant, width=width, **options)
    return _as_sparse(c, parts, counts, _most(c, counts))


def _most(c: Call, counts: Operand) -> Operand:
    return c.add("reduce_max", counts, axes=(0,), keepdims=False)


def _as_sparse(c: Call, parts: Operand, counts: Operand, widest: Operand) -> Results:
    """Returns the indices, the values and the shape of the first *counts* elements of each row of *parts*."""
    n, width = parts.shape
    inside = c.add("less", c.add("range", start=0, size=width, step=1), c.reshape(counts, [n, 1]))
    flat = true_positions(c, inside)
    row = c.add("div", flat, c.size(width))
    column = c.add("sub", flat, c.add("mul", row, c.size(width)))
    values = c.add("gather", c.reshape(parts, [total(parts.shape)]), flat, axis=0)
    shape = stack(c, [c.size(n), c.reshape(widest, [])], 0)
    return stack(c, [row, column], 1), Strings(values), shape


@translates("StringToHashBucketFast", "StringToHashBucketStrong")
def bucket(c: Call) -> Operand:
    """The buckets of strings by a hash, which may have a key."""
    key = c.ints("key") if c.op == "StringToHashBucketStrong" else None
    if key is not None and len(key) != 2:
        c.fail(f"its key is {key}, not two numbers", SAVE_AGAIN)
    return hashed(c, c.strings.constant, c.ids(), c.integer("num_buckets"), None if key is None else (key[0], key[1]))


@translates("AsString")
def as_string(c: Call) -> Results:
    """Integers in decimal digits."""
    x = c.tensor()
    if not x.dtype.is_int or c.integer("width", -1) >= 0 or c.text("fill", ""):
        c.fail(f"{x!r} in that form is not supported", "write integers, without a width")
    return Strings(c.add("string_format", c.kept(x if x.dtype is u64 else c.cast(x, i64)), c.strings.constant))


@translates("StringJoin")
def joined(c: Call) -> Results:
    """Strings one after another, with a separator between them."""
    given = [c.kept(c.ids(i)) for i in range(len(c.inputs))]
    wide = max(given, key=lambda x: x.rank)
    zero = c.add("mul", wide, c.scalar(0, i64))
    parts = [x if x.rank == wide.rank else c.add("add", x, zero) for x in given]
    separator = c.add("add", zero, c.scalar(c.strings.ids[c.text("separator", "")], i64))
    y = parts[0]
    for x in parts[1:]:
        if c.text("separator", ""):
            y = c.add("string_concat", y, separator, c.strings.constant)
        y = c.add("string_concat", y, x, c.strings.constant)
    return Strings(y)


@translates("SparseCross", outputs=("output_indices", "output_values", "output_shape"))
def cross(c: Call) -> Results:
    """The buckets of crosses of dense features [batch, 1], as a sparse matrix."""
    buckets, key = c.integer("num_buckets"), c.integer("hash_key")
    if not c.flag("hashed_output") or c.integer("N", 0) or buckets < 1:
        c.fail(
            "crosses of sparse features, and those that are texts, are not supported",
            "use tf.sparse.cross_hashed of tensors",
        )
    hashes = [_hash_of(c, i) for i in range(len(c.inputs))]
    if any(h.rank != 2 or getattr(h.shape[1], "value", None) != 1 for h in hashes):
        c.fail("its features are not of shape [batch, 1]", "cross features of one value")
    y = crossed(c, hashes, buckets, key)
    n = y.shape[0]
    row = c.add("range", start=0, size=n, step=1)
    places = stack(c, [row, c.add("mul", row, c.scalar(0, i64))], 1)
    return places, c.reshape(y, [n]), c.vector([n, 1])


def _hash_of(c: Call, i: int) -> Operand:
    if isinstance(c.inputs[i], Strings):
        return c.add("string_hash", c.ids(i), c.strings.constant, key=None)
    return c.cast(c.cast(c.tensor(i), i64), u64)


@translates("RaggedBincount")
def ragged_bincount(c: Call) -> Operand:
    """How often each number is in each row of a ragged tensor, or whether it is."""
    splits, values, weights = c.cast(c.tensor(0, 1), i64), c.cast(c.tensor(1, 1), i64), c.tensor(3)
    if getattr(weights.shape[0], "value", None) != 0:
        c.fail("weights are not supported", "count without weights")
    size = c.late_number(c.reshape(c.tensor(2), []), "bins", "the number of bins")
    rows, count = splits.shape[0] - 1, values.shape[0]
    ends = c.add("slice", splits, starts=(1,), ends=(splits.shape[0],), axes=(0,), steps=(1,))
    at = c.reshape(c.add("range", start=0, size=count, step=1), [count, 1])
    row = c.add(
        "reduce_sum", c.cast(c.add("less_equal", c.reshape(ends, [1, rows]), at), i64), axes=(1,), keepdims=False
    )
    inside = c.add("less", values, c.size(size))
    one = c.cast(inside, weights.dtype if weights.dtype.is_float else i32)
    place = c.add("minimum", values, c.size(as_expr(size) - 1))
    made = c.add("full", shape=(rows, size), value=0, dtype=one.dtype)
    made = c.add("scatter_nd", made, stack(c, [row, place], 1), one, reduction="add")
    if c.flag("binary_output"):
        made = c.add("minimum", made, c.scalar(1, made.dtype))
    return c.cast(made, weights.dtype)

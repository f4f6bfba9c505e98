"""Operators on strings, which the host computes (`loop.intrinsics`); between them strings are ids, integers.

Each takes the pool last, a constant of bytes with the strings that the model knows. Movement, comparison and choice of strings
are the operators on integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir import INDEX, ONE, Expr, ExprLike, as_expr
from weft.loop import Buffer, Call, Stmt
from weft.ops.registry import operator
from weft.ops.shapes import product, show_shape
from weft.support.dtypes import DType, bool_, f32, f64, handle, i32, i64, u8, u64
from weft.support.errors import TypeMismatch
from weft.te import Tensor, extern, whole

STRINGS: Final = "weft.strings"
"""The feature of a runtime that has these operators."""

TOKENS: Final = "weft.tokens"
"""The feature of one that makes tokens of strings, too."""

TEXTS: Final = "weft.texts"
"""The feature of one that hashes strings, replaces what matches, and changes the case of ASCII's letters alone."""

NUMBERS: Final = (f32, f64, i64, u64)
"""The types of numbers that are written and read as strings."""


def _on_host(
    name: str,
    x: Tensor,
    pool: Tensor,
    made: Sequence[tuple[Sequence[Expr], DType]],
    rest: Callable[[list[Expr], list[Expr]], list[Expr]],
    more: Sequence[Tensor] = (),
) -> tuple[Tensor, ...]:
    """Returns the tensors *made* by one call, whose last arguments are *rest* of the addresses of *more* and of the results."""
    _check(name, "its pool", pool, u8)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        given, bytes_of, *others = ins
        head = [whole(bytes_of), bytes_of.shape[0], whole(given), product(given.shape)]
        return Call(f"weft.{name}", (*head, *rest([whole(b) for b in others], [whole(b) for b in outs])))

    shapes, dtypes = [shape for shape, _ in made], [dtype for _, dtype in made]
    return extern(shapes, [x, pool, *more], body, dtypes, name)


def _check(name: str, what: str, x: Tensor, dtype: DType) -> None:
    if x.dtype is not dtype:
        raise TypeMismatch(f"{name}: {what} should be of {dtype}, not {x.dtype}{show_shape(x.shape)}")


@operator("strings_take", on_host=STRINGS)
def strings_take(x: Tensor, pool: Tensor) -> Tensor:
    """The ids of a caller's strings, whose addresses *x* has."""
    _check("strings_take", "its input", x, handle)
    return _on_host("strings_take", x, pool, [(x.shape, i64)], lambda _, outs: outs)[0]


@operator("strings_give", on_host=STRINGS)
def strings_give(x: Tensor, pool: Tensor) -> Tensor:
    """The addresses, for a caller, of the strings with the ids *x*."""
    _check("strings_give", "its input", x, i64)
    return _on_host("strings_give", x, pool, [(x.shape, handle)], lambda _, outs: outs)[0]


@operator("string_concat", on_host=STRINGS)
def string_concat(x: Tensor, y: Tensor, pool: Tensor) -> Tensor:
    """The strings *x* with those of *y* behind them, element by element."""
    _check("string_concat", "its first input", x, i64)
    _check("string_concat", "its second input", y, i64)
    if len(x.shape) != len(y.shape) or any(a is not b for a, b in zip(x.shape, y.shape, strict=True)):
        raise TypeMismatch(
            f"string_concat takes strings of one shape, not {show_shape(x.shape)} and {show_shape(y.shape)}"
        )
    return _on_host("string_concat", x, pool, [(x.shape, i64)], lambda others, outs: [*others, *outs], [y])[0]


@operator("string_part_counts", on_host=STRINGS)
def string_part_counts(x: Tensor, pool: Tensor, *, delimiter: int, most: int) -> Tensor:
    """The number of parts that `string_split` has of each string."""
    return _split(x, pool, delimiter, most, None)


@operator("string_split", on_host=STRINGS)
def string_split(x: Tensor, pool: Tensor, *, delimiter: int, most: int, width: ExprLike) -> Tensor:
    """The parts of each string, *width* of them along a new last dimension, and "" behind the last.

    They are the substrings between delimiters, of which *delimiter* is the id; between white space for that of "". At most *most*
    splits are made, from the left, of -1 all.
    """
    return _split(x, pool, delimiter, most, as_expr(width, INDEX))


def _split(x: Tensor, pool: Tensor, delimiter: int, most: int, width: Expr | None) -> Tensor:
    _check("string_split", "its input", x, i64)
    shape = x.shape if width is None else (*x.shape, width)
    numbers = [as_expr(n, INDEX) for n in (delimiter, most, -1 if width is None else width)]
    return _on_host("string_split", x, pool, [(shape, i64)], lambda _, outs: [*numbers, *outs])[0]


@operator("string_case", on_host=STRINGS)
def string_case(x: Tensor, pool: Tensor, *, upper: bool) -> Tensor:
    """The strings in capitals, or without them: letters whose other case is one letter (Unicode's simple mappings)."""
    _check("string_case", "its input", x, i64)
    return _on_host("string_case", x, pool, [(x.shape, i64)], lambda _, outs: [as_expr(int(upper), INDEX), *outs])[0]


@operator("string_case_ascii", on_host=TEXTS)
def string_case_ascii(x: Tensor, pool: Tensor, *, upper: bool) -> Tensor:
    """The strings in capitals, or without them, of which other letters than those of ASCII stay as they are."""
    _check("string_case_ascii", "its input", x, i64)
    made: list[tuple[Sequence[Expr], DType]] = [(x.shape, i64)]
    return _on_host("string_case", x, pool, made, lambda _, outs: [as_expr(2 + int(upper), INDEX), *outs])[0]


@operator("string_hash", on_host=TEXTS)
def string_hash(x: Tensor, pool: Tensor, *, key: tuple[int, int] | None) -> Tensor:
    """Hashes of the strings: SipHash-2-4 by a *key*, or the fingerprints of FarmHash where it is None."""
    _check("string_hash", "its input", x, i64)
    how = [as_expr(n, INDEX) for n in (0, 0, 0)] if key is None else [as_expr(n, INDEX) for n in (1, *key)]
    return _on_host("string_hash", x, pool, [(x.shape, u64)], lambda _, outs: [*how, *outs])[0]


@operator("string_replace", on_host=TEXTS)
def string_replace(x: Tensor, program: Tensor, pool: Tensor, *, by: int, every: bool) -> Tensor:
    """The strings with the string of id *by* in the place of *every* match of an expression, or of the first.

    Matches are the leftmost and longest.
    """
    _check("string_replace", "its input", x, i64)
    _check("string_replace", "its program", program, i32)
    numbers = [program.shape[0], *[as_expr(n, INDEX) for n in (by, int(every))]]
    made: list[tuple[Sequence[Expr], DType]] = [(x.shape, i64)]
    return _on_host("string_replace", x, pool, made, lambda others, outs: [*others, *numbers, *outs], [program])[0]


@operator("string_match", on_host=STRINGS)
def string_match(x: Tensor, program: Tensor, pool: Tensor) -> Tensor:
    """Whether each string as a whole is one that the regular expression of *program* describes."""
    _check("string_match", "its input", x, i64)
    _check("string_match", "its program", program, i32)
    size = program.shape[0]
    made: list[tuple[Sequence[Expr], DType]] = [(x.shape, bool_)]
    return _on_host("string_match", x, pool, made, lambda others, outs: [*others, size, *outs], [program])[0]


@operator("string_token_counts", on_host=TOKENS)
def string_token_counts(x: Tensor, programs: Tensor, pool: Tensor, *, how: tuple[int, ...]) -> Tensor:
    """The number of tokens that `string_tokens` has of each string."""
    return _tokens(x, programs, pool, how, None)


@operator("string_tokens", on_host=TOKENS)
def string_tokens(x: Tensor, programs: Tensor, pool: Tensor, *, how: tuple[int, ...], width: ExprLike) -> Tensor:
    """The tokens of each string, *width* of them along a new last dimension.

    Each of the *programs*, regular expressions behind the numbers of their words, separates the pieces that those before it left;
    or one finds the tokens. *how* says which, and the least characters of a token, and the ids of the padding behind the last in
    a row, and before the first and behind the last token where these are not -1.
    """
    return _tokens(x, programs, pool, how, as_expr(width, INDEX))


def _tokens(x: Tensor, programs: Tensor, pool: Tensor, how: tuple[int, ...], width: Expr | None) -> Tensor:
    _check("string_tokens", "its input", x, i64)
    _check("string_tokens", "its programs", programs, i32)
    shape = x.shape if width is None else (*x.shape, width)
    numbers = [programs.shape[0], *[as_expr(n, INDEX) for n in (*how, -1 if width is None else width)]]
    made: list[tuple[Sequence[Expr], DType]] = [(shape, i64)]
    return _on_host("string_tokens", x, pool, made, lambda others, outs: [*others, *numbers, *outs], [programs])[0]


@operator("string_format", on_host=STRINGS, reads_bits=True)
def string_format(x: Tensor, pool: Tensor) -> Tensor:
    """The numbers *x* as strings, floats in the fewest digits that read back as they are."""
    if x.dtype not in NUMBERS:
        raise TypeMismatch(f"string_format takes {', '.join(map(str, NUMBERS))}, not {x.dtype}")
    code = as_expr(x.dtype.code, INDEX)
    return _on_host("string_format", x, pool, [(x.shape, i64)], lambda _, outs: [code, *outs])[0]


@operator("string_parse", on_host=STRINGS)
def string_parse(x: Tensor, pool: Tensor, *, dtype: DType) -> tuple[Tensor, ...]:
    """The strings *x* as numbers of *dtype*, and [which of them is the first that is none, counted from 1; 0 where all are]."""
    _check("string_parse", "its input", x, i64)
    if dtype not in NUMBERS:
        raise TypeMismatch(f"string_parse makes {', '.join(map(str, NUMBERS))}, not {dtype}")
    code = as_expr(dtype.code, INDEX)
    return _on_host("string_parse", x, pool, [(x.shape, dtype), ((ONE,), i64)], lambda _, outs: [code, *outs])

"""The values of attributes: numbers, texts, lists, dictionaries, and those of StableHLO's own forms.

[1, 2]                                        [1, 2]
[1] x [0]                                     Chain([[1], [0]])
array<i64: 1, 2>                              [1, 2]
#stablehlo.gather<offset_dims = [1]>          {"offset_dims": [1]}
#stablehlo<precision DEFAULT>                 "DEFAULT"
dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>     Dense([[0, 0], [3, 0]], "tensor<2x2xi64>")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from weft.frontends.jax.text.mlir_tokens import Tokens

_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
_OPAQUE: Final = ("sdy", "loc", "mhlo", "vhlo")
"""Dialects whose attributes are skipped: they say how the program is spread over devices."""


@dataclass(frozen=True)
class Dense:
    """The elements of a tensor: a number for all, nested lists of them, or a text of hexadecimal digits; and its type."""

    elements: Any
    type: str
    resource: bool = False


class Chain(list[Any]):
    """Values joined by `x` or `->`."""


def read_value(t: Tokens, *, typed: bool = True) -> Any:
    """Returns the value of an attribute; *typed* tells whether a type may follow a number."""
    first = _read_single(t, typed=typed)
    if t.text not in ("x", "->"):
        return first
    made = Chain([first])
    while t.accept("x") or t.accept("->"):
        made.append(_read_single(t, typed=typed))
    return made


def _read_single(t: Tokens, *, typed: bool) -> Any:
    if t.kind == "number":
        return _read_number(t, typed=typed)
    if t.kind == "string":
        return unquoted(t.take())
    if t.kind in ("symbol", "type"):
        return t.take().removeprefix("@").strip('"')
    if t.kind == "hash":
        return _read_dialect_attribute(t)
    if t.kind == "word":
        return _read_word(t)
    if t.text == "[":
        return read_list(t, "[", "]")
    if t.text == "(":
        return read_list(t, "(", ")")
    if t.text == "{":
        return read_dictionary(t)
    return t.fail("the value of an attribute is expected")


def _read_number(t: Tokens, *, typed: bool) -> Any:
    """Returns a number, or the numbers `first:end:step` of a slice."""
    made = [number_of(t)]
    while t.text == ":":
        if not typed:
            break
        t.take()
        if t.kind == "number":
            made.append(number_of(t))
        elif t.kind in ("word", "type"):
            t.take()
            break
        else:
            t.fail("a number or a type is expected")
    return made[0] if len(made) == 1 else tuple(made)


def number_of(t: Tokens) -> int | float:
    """Returns the next token as a number."""
    text = t.text
    try:
        made = int(text, 16) if "x" in text else float(text) if "." in text or "e" in text or "E" in text else int(text)
    except ValueError:
        t.fail("a number of fewer digits is expected")
    t.take()
    return made


def _read_word(t: Tokens) -> Any:
    word = t.take()
    if word in ("true", "false"):
        return word == "true"
    if word in ("dense", "dense_resource"):
        return _read_dense(t, resource=word == "dense_resource")
    if word == "array":
        return _read_array(t)
    if word == "loc":
        return t.skip_nested("(", ")")
    if t.text == "<":
        t.skip_nested("<", ">")
    return word


def _read_dense(t: Tokens, *, resource: bool) -> Dense:
    t.expect("<")
    elements = "" if t.text == ">" else read_value(t)
    t.expect(">")
    t.expect(":")
    return Dense(elements, t.take_kind("type"), resource)


def _read_array(t: Tokens) -> list[Any]:
    """Reads `array<i64: 1, 2>`."""
    t.expect("<")
    t.take_kind("word")
    made: list[Any] = []
    if t.accept(":"):
        made.append(read_value(t))
        while t.accept(","):
            made.append(read_value(t))
    t.expect(">")
    return made


def _read_dialect_attribute(t: Tokens) -> Any:
    name = t.take()[1:]
    if t.text != "<":
        return name
    if name.partition(".")[0] in _OPAQUE:
        t.skip_nested("<", ">")
        return name
    t.expect("<")
    keys, values = dict[str, Any](), list[Any]()
    while not t.accept(">"):
        value = read_value(t)
        if isinstance(value, str) and t.accept("="):
            keys[value] = read_value(t)
        else:
            values.append(value)
        t.accept(",")
    return keys if keys or not values else values[-1]


def read_list(t: Tokens, opening: str, closing: str) -> list[Any]:
    """Reads values between two marks."""
    t.expect(opening)
    made: list[Any] = []
    while not t.accept(closing):
        made.append(read_value(t))
        if t.text != closing:
            t.expect(",")
    return made


def read_dictionary(t: Tokens) -> dict[str, Any]:
    """Reads `{name = value, name}`; a name alone stands for true."""
    t.expect("{")
    made: dict[str, Any] = {}
    while not t.accept("}"):
        if t.kind not in ("word", "string"):
            t.fail("the name of an attribute is expected")
        name = t.take().strip('"')
        made[name] = read_value(t) if t.accept("=") else True
        if t.text != "}":
            t.expect(",")
    return made


def unquoted(text: str) -> str:
    """Returns the text of a string literal."""
    if "\\" not in text:
        return text[1:-1]
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], text[1:-1])

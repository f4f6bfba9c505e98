"""Host operators on strings for interpreted programs: the reference for `native/hostops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.codegen.interp.array_memory import Array
from weft.codegen.interp.string_hashes import fingerprint, siphash
from weft.support.dtypes import SCALARS

Place = tuple[Array, int]
"""An address: a flat array, and the number of an element in it."""

_MATCH, _JUMP, _SPLIT, _SET, _ASSERT = range(5)
_TYPES: Final = list(SCALARS.values())


class Strings:
    """The strings of one run by their ids; `outside` has those of the caller, which tensors name by their number and one.

    An element 0 of such a tensor is the empty string.
    """

    def __init__(self, outside: list[str] | None = None) -> None:
        self.outside = outside if outside is not None else []
        self.known: list[str] = []
        self.ids: dict[str, int] = {}

    def id(self, text: str) -> int:
        """Returns the id of a string, a new one if need be."""
        if text not in self.ids:
            self.ids[text] = len(self.known)
            self.known.append(text)
        return self.ids[text]

    def library(self) -> dict[str, Callable[..., None]]:
        """Returns the callees by name."""
        return {f"weft.{name}": _elementwise(self, body) for name, body in _BODIES.items()}

    def enter(self, pool: Place) -> None:
        """Enters the strings of the pool, if none are known yet."""
        if self.known:
            return
        data = pool[0][pool[1] :].tobytes()
        count = int(np.frombuffer(data, np.int32, 1)[0])
        begins = np.frombuffer(data, np.int32, count + 1, 4)
        for k in range(count):
            head = 4 * (count + 2)
            self.id(data[head + begins[k] : head + begins[k + 1]].decode("utf-8", "surrogateescape"))


def _elementwise(s: Strings, body: Callable[..., Any]) -> Callable[..., None]:
    def run(pool: Place, _bytes: int, given: Place, count: int, *rest: Any) -> None:
        s.enter(pool)
        for k in range(count):
            body(s, given[0][given[1] + k], k, *rest)

    return run


def _put(to: Place, k: int, value: Any) -> None:
    to[0][to[1] + k] = value


def _take(s: Strings, element: Any, k: int, to: Place) -> None:
    _put(to, k, s.id(s.outside[int(element) - 1]) if element else 0)


def _give(s: Strings, element: Any, k: int, to: Place) -> None:
    s.outside.append(s.known[element])
    _put(to, k, len(s.outside))


def _concat(s: Strings, element: Any, k: int, other: Place, to: Place) -> None:
    _put(to, k, s.id(s.known[element] + s.known[other[0][other[1] + k]]))


def _split(s: Strings, element: Any, k: int, delimiter: int, most: int, width: int, to: Place) -> None:
    parts = s.known[element].split(s.known[delimiter] or None, most)
    if width < 0:
        _put(to, k, len(parts))
    for j in range(width):
        _put(to, k * width + j, s.id(parts[j]) if j < len(parts) else 0)


def _case(s: Strings, element: Any, k: int, upper: int, to: Place) -> None:
    kept = [upper >= 2 and not c.isascii() for c in s.known[element]]
    cased = [c.upper() if upper % 2 else c.lower() for c in s.known[element]]
    letters = [(c, c if k else other) for c, k, other in zip(s.known[element], kept, cased, strict=True)]
    _put(to, k, s.id("".join([other if len(other) == 1 else c for c, other in letters])))


def _match(s: Strings, element: Any, k: int, program: Place, words: int, to: Place) -> None:
    _put(to, k, _matches([int(w) for w in program[0][program[1] : program[1] + words]], s.known[element]))


def _matches(program: list[int], text: str) -> bool:
    """Answers whether a program of `frontends.regular_expressions` matches the whole *text*."""
    return _longest(program, text, 0) == len(text)


def _longest(program: list[int], text: str, begin: int) -> int:
    """Returns the end of the longest match that begins at *begin*, -1 for none, by trying one way after another."""
    count = program[0]
    code = [tuple(program[2 + 3 * k : 5 + 3 * k]) for k in range(count)]
    ranges = program[2 + 3 * count :]
    seen: set[tuple[int, int]] = set()
    open_ = [(0, begin)]
    found = -1
    while open_:
        state = open_.pop()
        if state in seen:
            continue
        seen.add(state)
        at, i = state
        operation, a, b = code[at]
        if operation == _MATCH:
            found = max(found, i)
        if operation in (_JUMP, _SPLIT):
            open_ += [(a, i)] + ([(b, i)] if operation == _SPLIT else [])
        in_set = operation == _SET and i < len(text)
        if in_set and any(ranges[2 * r] <= ord(text[i]) <= ranges[2 * r + 1] for r in range(a, a + b)):
            open_.append((at + 1, i + 1))
        if operation == _ASSERT and _holds(a, text, i):
            open_.append((at + 1, i))
    return found


def _tokens(s: Strings, element: Any, k: int, programs: Place, words: int, *rest: Any) -> None:
    finds, least, pad, first, last, width, to = rest
    held, given = [int(w) for w in programs[0][programs[1] : programs[1] + words]], list[list[int]]()
    while held:
        given.append(held[1 : 1 + held[0]])
        held = held[1 + held[0] :]
    texts = [s.known[element]]
    for program in given:
        texts = [t for text in texts for t in _pieces(program, text, finds=bool(finds)) if len(t) >= least]
    made = [*[first] * (first >= 0), *[s.id(t) for t in texts], *[last] * (first >= 0)]
    if width < 0:
        _put(to, k, len(made))
    for j in range(width):
        _put(to, k * width + j, made[j] if j < len(made) else pad)


def _pieces(program: list[int], text: str, *, finds: bool) -> list[str]:
    """Returns the matches in *text*, or the pieces between them unless it *finds*."""
    at = begin = 0
    made = []
    while at <= len(text):
        end = _longest(program, text, at)
        if end < 0:
            at += 1
            continue
        made.append(text[at:end] if finds else text[begin:at])
        begin = at = max(end, at + 1)
    return made if finds or begin > len(text) else [*made, text[begin:]]


def _holds(kind: int, text: str, i: int) -> bool:
    def is_word(k: int) -> bool:
        return 0 <= k < len(text) and text[k].isascii() and (text[k].isalnum() or text[k] == "_")

    is_boundary = is_word(i - 1) != is_word(i)
    first, last = i == 0, i == len(text)
    after_line, before_line = first or text[i - 1] == "\n", last or text[i] == "\n"
    return (first, last, is_boundary, not is_boundary, after_line, before_line)[kind]


def _format(s: Strings, element: Any, k: int, _code: int, to: Place) -> None:
    _put(to, k, s.id(str(element)))


def _parse(s: Strings, element: Any, k: int, code: int, to: Place, bad: Place) -> None:
    dtype = _TYPES[code]
    if k == 0:
        _put(bad, 0, 0)
    try:
        text = s.known[element]
        if "_" in text:
            raise ValueError(text)
        _put(to, k, int(text) if dtype.is_int else dtype.numpy.type(text))
    except (OverflowError, ValueError):
        _put(to, k, 0)
        _put(bad, 0, bad[0][bad[1]] or k + 1)


def _hash(s: Strings, element: Any, k: int, keyed: int, first: int, second: int, to: Place) -> None:
    data = s.known[element].encode("utf-8", "surrogateescape")
    _put(to, k, siphash(data, first, second) if keyed else fingerprint(data))


def _replace(s: Strings, element: Any, k: int, program: Place, words: int, by: int, every: int, to: Place) -> None:
    code = [int(w) for w in program[0][program[1] : program[1] + words]]
    text, made, at, last, done = s.known[element], "", 0, -1, False
    while at <= len(text):
        stop = -1 if done and not every else _longest(code, text, at)
        if stop >= 0 and (stop > at or at != last):
            made, last, done = made + s.known[by], stop, True
            if stop > at:
                at = stop
                continue
        made, at = made + text[at : at + 1], at + 1
    _put(to, k, s.id(made))


_BODIES: Final[dict[str, Callable[..., None]]] = {
    "strings_take": _take,
    "strings_give": _give,
    "string_concat": _concat,
    "string_split": _split,
    "string_case": _case,
    "string_match": _match,
    "string_format": _format,
    "string_parse": _parse,
    "string_tokens": _tokens,
    "string_hash": _hash,
    "string_replace": _replace,
}

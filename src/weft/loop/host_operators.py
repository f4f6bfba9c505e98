"""Operators that are no loop nests: C of the runtime, which generated code calls through the context by a number.

    call("weft.string_concat", pool.at(0), 64, a.at(0), n, b.at(0), out.at(0))

`native/hostops` has them, in the same order. Their strings are numbers, *ids*: equal ids for equal strings, so that loops move
and compare them as the integers they are. The first arguments of each are the pool, which is the constant with the strings that
the model knows (`native/hostops/strings.h`), its bytes, the elements that are computed with, and their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "weft.string"
"""What the names of these callees begin with."""


@dataclass(frozen=True)
class HostOperator:
    """What a callee is called by, and the numbers of the arguments whose memory it reads and writes."""

    number: int
    reads: frozenset[int]
    writes: frozenset[int]


def _numbered(**rows: tuple[tuple[int, ...], tuple[int, ...]]) -> dict[str, HostOperator]:
    return {
        f"weft.{name}": HostOperator(k, frozenset((0, 2, *reads)), frozenset(writes))
        for k, (name, (reads, writes)) in enumerate(rows.items())
    }


HOST_OPERATORS: Final = _numbered(
    strings_take=((), (4,)),  # addresses of a caller's strings -> ids
    strings_give=((), (4,)),  # ids -> addresses of strings, which the context has
    string_concat=((4,), (5,)),  # ids, others -> ids
    string_split=(
        (),
        (7,),
    ),  # id of the delimiter, most splits (-1: all), width -> ids of parts; of width 0: their number
    string_case=((), (5,)),  # 1: upper, 0: lower -> ids
    string_match=((4,), (6,)),  # program of a regular expression, its words -> bools
    string_format=((), (5,)),  # code of the numbers' type -> ids
    string_parse=((), (5, 6)),  # code of the type -> numbers, and the first element that is none, counted from 1
)
"""By the name of the callee."""

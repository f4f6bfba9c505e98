"""The shuffles that transpose a square tile in registers: within the parts of the vectors, then of whole parts.

    a0 a1 a2 a3        a0 b0 a1 b1        a0 b0 c0 d0
    b0 b1 b2 b3   ->   a2 b2 a3 b3   ->   a1 b1 c1 d1
    c0 c1 c2 c3        c0 d0 c1 d1        a2 b2 c2 d2
    d0 d1 d2 d3        c2 d2 c3 d3        a3 b3 c3 d3

One instruction shuffles freely within a part of `Isa.shuffle_bytes` (on x86 128 bits); a tile of n rows takes n * log2(n)
shuffles, which is the least: one shuffle combines two vectors, and a column has elements of n rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import Expr, Shuffle

Name = Callable[[Expr], Expr]
"""Binds a value to a variable, which it returns."""


def transposed(rows: Sequence[Expr], per_part: int, name: Name) -> list[Expr]:
    """Returns the columns of the square matrix of *rows*, in parts of so many elements each; *name* binds shared values."""
    made, lanes = list(rows), len(rows)
    step = 1
    while step < per_part:
        made = _interleaved(made, step, per_part, name)
        step *= 2
    parts = [_transposed_parts(made[_reversed_bits(c, per_part) :: per_part], per_part, name) for c in range(per_part)]
    return [parts[k % per_part][k // per_part] for k in range(lanes)]


def _reversed_bits(number: int, size: int) -> int:
    width = size.bit_length() - 1
    return int(format(number, f"0{width}b")[::-1], 2) if width else 0


def _interleaved(rows: Sequence[Expr], step: int, per_part: int, name: Name) -> list[Expr]:
    """Interleaves groups of *step* elements of rows *step* apart, within each part: low halves, then high halves."""
    lanes, made, half = len(rows), list(rows), per_part // 2
    for i in range(lanes):
        if not i & step:
            for first, to in ((0, i), (half, i + step)):
                picks: list[int] = []
                for part in range(0, lanes, per_part):
                    for k in range(part + first, part + first + half, step):
                        picks += [*range(k, k + step), *range(lanes + k, lanes + k + step)]
                made[to] = name(Shuffle(rows[i], rows[i + step], tuple(picks)))
    return made


def _transposed_parts(group: Sequence[Expr], per_part: int, name: Name) -> list[Expr]:
    """Returns vectors of which the k-th holds part k of each vector of *group*, by taking even and odd parts of pairs."""
    made, lanes = list(group), group[0].dtype.lanes
    for _ in range(len(group).bit_length() - 1):
        halves: list[list[Expr]] = [[], []]
        for a, b in zip(made[::2], made[1::2], strict=True):
            for odd in (0, 1):
                starts = [s + p for s in (0, lanes) for p in range(odd * per_part, lanes, 2 * per_part)]
                halves[odd].append(name(Shuffle(a, b, tuple([s + k for s in starts for k in range(per_part)]))))
        made = halves[0] + halves[1]
    return made

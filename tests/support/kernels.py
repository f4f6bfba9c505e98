"""GEMM microkernels as the lowering passes should produce them, and what to look for in those that the machine gets."""

from __future__ import annotations

import re

from weft.ir import Broadcast, Expr, Ramp, Var, const, index
from weft.loop import Alloc, Buffer, For, Function, Load, LoopKind, Program, Stmt, Store, for_, seq
from weft.loop.nodes import load
from weft.support.dtypes import f32

LABEL = re.compile(r"^\.L\w+:$")


def loop(var: Var, extent: int, body: Stmt, kind: LoopKind = LoopKind.SERIAL) -> For:
    return for_(var, extent, body, kind)


def unrolled(var: Var, extent: int, body: Stmt) -> For:
    return for_(var, extent, body, LoopKind.UNROLLED)


def vector(buffer: Buffer, at: Expr, lanes: int) -> Expr:
    return Load(buffer, (Ramp(at, index(1), lanes),))


def put(buffer: Buffer, at: Expr, value: Expr) -> Stmt:
    return Store(buffer, (Ramp(at, index(1), value.dtype.lanes),), value, None)


def gemm(
    m: int,
    n: int,
    k: int,
    mr: int,
    nr: int,
    lanes: int,
    *,
    unroll: int = 1,
    packed: bool = False,
    k_outer: bool = False,
) -> Program:
    """C[m][n] = A[m][k] * B, with B in panels [n/nr][k][nr]; A row-major, or packed [m/mr][k][mr].

    A register tile of mr x nr, `lanes` wide; the k loop unrolled `unroll` times.
    """
    a, b, c = Buffer("a", [m * k], f32), Buffer("b", [n * k], f32), Buffer("c", [m * n], f32)
    acc = Buffer("acc", [mr * nr], f32, "register")
    jo, io, ko, ku, i, j = (Var(x) for x in ("jo", "io", "ko", "ku", "i", "j"))
    js = nr // lanes
    kk = ko * unroll + ku
    row = io * mr + i
    at = row * k + kk if not packed else io * (mr * k) + kk * mr + i
    bb = vector(b, jo * (nr * k) + kk * nr + j * lanes, lanes)
    tile = i * nr + j * lanes
    update = put(acc, tile, vector(acc, tile, lanes) + Broadcast(load(a, at), lanes) * bb)
    zero = put(acc, tile, const(0.0, f32.with_lanes(lanes)))
    out = put(c, row * n + jo * nr + j * lanes, vector(acc, tile, lanes))

    def tiles(s: Stmt) -> Stmt:
        return unrolled(i, mr, unrolled(j, js, s))

    step: Stmt = tiles(update)
    if unroll > 1:
        step = unrolled(ku, unroll, step)
    else:
        step = for_(ku, 1, step, LoopKind.UNROLLED)
    body = Alloc(acc, seq(tiles(zero), loop(ko, k // unroll, step), tiles(out)))
    nest = loop(jo, n // nr, loop(io, m // mr, body))
    return Program((Function("gemm", (a, b, c), nest),))


def inner_loop(text: str, wanted: str) -> list[str]:
    """The instructions of the loop (label to jump back) that has the most *wanted* instructions."""
    lines = [line.strip() for line in text.splitlines()]
    best: list[str] = []
    for begin, line in enumerate(lines):
        if LABEL.match(line):
            back = [k for k in range(begin, len(lines)) if re.match(rf"j\w+\s+{re.escape(line[:-1])}$", lines[k])]
            body = lines[begin + 1 : back[0]] if back else []
            if (
                body
                and not any(LABEL.match(x) for x in body)
                and sum(wanted in x for x in body) > sum(wanted in x for x in best)
            ):
                best = body
    return best


def spills(text: str) -> list[str]:
    """The moves of vectors to or from the stack."""
    return [line for line in text.splitlines() if "mov" in line and "rsp" in line and "mm" in line]

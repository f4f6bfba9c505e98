"""Attention as formulas, with what it should compute in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.lower.expanding import expand_instructions
from tests.schedule.programs import Array

from weft import te
from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.ir import Expr, Var, cast, select
from weft.loop import Program
from weft.lower import lower
from weft.ops import OPERATORS
from weft.support.dtypes import DType, f16, f32
from weft.targets import Target


@dataclass(frozen=True)
class Shape:
    """Heads, rows of queries, keys, and the sizes of a key and of a value; *shared* heads of queries have the same keys."""

    heads: int = 2
    rows: int = 9
    keys: int = 21
    depth: int = 8
    columns: int = 8
    shared: int = 1


def attention(
    a: Shape,
    *,
    mask: str = "",
    dtype: DType = f32,
    joined: bool = False,
    rows: Expr | None = None,
    keys: Expr | None = None,
) -> Program:
    """Returns `softmax(q k' / sqrt(depth) + mask) v`, its heads *joined* by a transposition; *mask* is "bias" or "causal"."""
    m, n = a.rows if rows is None else rows, a.keys if keys is None else keys
    q = te.placeholder((a.heads, m, a.depth), dtype, "q")
    k = te.placeholder((a.heads // a.shared, n, a.depth), dtype, "k")
    v = te.placeholder((a.heads // a.shared, n, a.columns), dtype, "v")
    bias = te.placeholder((m, n), f32, "bias")
    d, j = te.reduce_axis(a.depth, "d"), te.reduce_axis(n, "j")

    def of(x: te.Tensor, *at: Any) -> Expr:
        return cast(x[at], f32)

    def scaled(h: Var, i: Var, j: Var) -> Expr:
        score = s[h, i, j] * a.depth**-0.5
        hidden = select(j <= i, score, float("-inf"))
        return score + bias[i, j] if mask == "bias" else hidden if mask == "causal" else score

    s = te.compute((a.heads, m, n), lambda h, i, j: te.sum_(of(q, h, i, d) * of(k, h // a.shared, j, d), [d]), "s")
    (p,) = OPERATORS["softmax"]([te.compute((a.heads, m, n), scaled, "scaled")], {"axis": -1})
    o = te.compute((a.heads, m, a.columns), lambda h, i, c: te.sum_(p[h, i, j] * of(v, h // a.shared, j, c), [j]), "o")
    y = te.compute((m, a.heads, a.columns), lambda i, h, c: cast(o[h, i, c], dtype), "y") if joined else o
    sizes = [x for x in (rows, keys) if isinstance(x, Var)]
    return te.to_program([q, k, v, *([bias] if mask == "bias" else [])], [y], "main", sizes)


def check_attention(
    a: Shape, program: Program, target: Target, *, mask: str = "", dtype: DType = f32, joined: bool = False
) -> Counters:
    """Runs the threads of a scheduled attention, which finds races, and compares what they compute; returns the counters."""
    rng = np.random.default_rng(0)
    kind = np.float16 if dtype is f16 else np.float32
    heads = a.heads // a.shared
    shapes = {"q": (a.heads, a.rows, a.depth), "k": (heads, a.keys, a.depth), "v": (heads, a.keys, a.columns)}
    given: dict[str, Array] = {n: rng.standard_normal(s, np.float32).astype(kind) for n, s in shapes.items()}
    bias = rng.standard_normal((a.rows, a.keys), np.float32)
    bias[: a.rows // 2, : a.keys // 2] = -np.inf  # whole blocks of keys, before the first that is seen
    wanted = expected(a, given, bias, mask)
    if mask == "bias":
        given["bias"] = bias
    flat = expand_instructions(lower(program, target, verify=True))
    made = np.full(wanted.swapaxes(0, 1).shape if joined else wanted.shape, np.nan, kind if joined else np.float32)
    output = made.reshape(-1)
    name = "y" if joined else "o"
    sizes = {"m": a.rows, "n": a.keys}
    known = {p.name: sizes[p.name] for p in flat.entry.params if p.name in sizes}
    counters = run_threads(flat, {**{n: x.reshape(-1) for n, x in given.items()}, **known, name: output}, target)
    tolerance = 2e-3 if dtype is f16 else 2e-6
    np.testing.assert_allclose(made.swapaxes(0, 1) if joined else made, wanted, rtol=0, atol=tolerance)
    return counters


def expected(a: Shape, given: dict[str, Array], bias: Array, mask: str) -> Array:
    """Returns what an attention computes."""
    q, k, v = (x.astype(np.float32) for x in (given["q"], given["k"], given["v"]))
    k, v = k.repeat(a.shared, 0), v.repeat(a.shared, 0)
    scores = q @ k.swapaxes(1, 2) * a.depth**-0.5
    if mask == "bias":
        scores = scores + bias
    if mask == "causal":
        scores = np.where(np.tri(a.rows, a.keys, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = weights / weights.sum(-1, keepdims=True) @ v
    return result

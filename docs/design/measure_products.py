"""Measures products of matrices and convolutions in other forms: decision 0084 of `measure.py`."""

from __future__ import annotations

import numpy as np
from timing import best

import weft
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.graph import Graph
from weft.support.dtypes import f32


def parts() -> None:
    """0084: products of float32 by vectors, and in parts of bf16, splitting included, in turns; errors relative to the largest"""
    rng = np.random.default_rng(0)
    for rows, depth, columns in ((128, 768, 768), (128, 768, 3072), (128, 3072, 768), (192, 512, 512), (512, 512, 512)):
        x, w = (rng.standard_normal(s).astype(np.float32) for s in ((rows, depth), (depth, columns)))
        g = Graph()
        g.output(g.add("matmul", [g.input("x", x.shape, f32), g.constant(w, "w")]), "y")
        exact = x.astype(np.float64) @ w
        _compare(f"{rows} x {depth} x {columns}", g, x, 2 * rows * depth * columns, exact)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((1, 512, 14, 14), (512, 512, 1, 1)))
    g = Graph()
    g.output(g.add("conv2d", [g.input("x", x.shape, f32), g.constant(w, "w"), None]), "y")
    exact = np.einsum("ncyx,oc->noyx", x.astype(np.float64), w[:, :, 0, 0])
    _compare("14 x 14 places, 512 channels", g, x, 2 * 14 * 14 * 512**2, exact)


def _compare(name: str, g: Graph, x: np.ndarray, operations: int, exact: np.ndarray) -> None:
    forms = [CompileOptions(without=("parts",)), CompileOptions()]
    models = [weft.Model(build(g, "cpu", options).package, threads=1) for options in forms]
    times = [min(t) for t in zip(*[[best(lambda m=m: m.run([x])) for m in models] for _ in range(40)], strict=True)]
    errors = [np.abs(m.run([x])[0] - exact).max() / np.abs(exact).max() for m in models]
    rates = ", ".join([f"{operations / t * 1e-9:.0f} ({e:.1e})" for t, e in zip(times, errors, strict=True)])
    print(f"{name}: {rates}")

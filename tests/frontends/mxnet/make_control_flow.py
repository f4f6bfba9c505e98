"""Has MXNet make the symbols of `control_flow/`, which have others inside of them.

Run it by a Python that has mxnet 1.9 and a numpy below 1.24: `python tests/frontends/mxnet/make_control_flow.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx

FOLDER = Path(__file__).parent / "control_flow"
S = mx.sym


def foreach() -> Any:
    x, h, w = S.var("x"), S.var("h"), S.var("w")
    return S.Group([*S.contrib.foreach(lambda v, s: (S.tanh(v + s) * w, S.tanh(v + s)), x, h)])


def while_loop() -> Any:
    a, b, w = S.var("a"), S.var("b"), S.var("w")
    rows, states = S.contrib.while_loop(
        lambda i, s: i < 5, lambda i, s: ([s * 2], [i + 1, s + w]), [a, b], max_iterations=8
    )
    return S.Group([*rows, *states])


def cond() -> Any:
    a, b, w = S.var("a"), S.var("b"), S.var("w")
    return S.contrib.cond(S.sum(a) < 5, lambda: a * w, lambda: a + b)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for make in (foreach, while_loop, cond):
        (FOLDER / f"{make.__name__}-symbol.json").write_text(make().tojson())

"""Operators whose work is in memory, on arrays larger than the caches, against NumPy and the speed of memory.

    python -m benchmarks.large_arrays

    argsort of 1e6 floats           at most 3 times NumPy's time
    cumsum of 1e7 floats            at least half of the speed of memory: the bytes read and written by the time of a call
    scatter_add of 1e6 updates      at most 2 times the time of `np.add.at`

One thread, processor time, in turns, the fastest round of each. Both write to arrays that exist, where NumPy can. Exits with 1
where one of these does not hold, or the results differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.driver.measure.bandwidth import ReadBandwidth

ROUNDS: Final = 9
FAR: Final = 256 << 20
"""Bytes of a buffer that no cache holds."""

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Case:
    """A node of *inputs*, an input of the model or a constant each, and what it gives; *output* is the one that counts.

    It is to take at most *most* times as long as NumPy's *function*, or, with *share*, to reach that part of the speed of memory.
    """

    op: str
    inputs: Sequence[Array]
    constants: Sequence[Array]
    outputs: Sequence[str]
    attributes: dict[str, object]
    function: Callable[[], Array]
    most: float | None = None
    share: float | None = None

    def compiled(self) -> weft.Model:
        names = [f"x{k}" for k in range(len(self.inputs))]
        known = [f"c{k}" for k in range(len(self.constants))]
        node = helper.make_node(self.op, [*names, *known], self.outputs, **self.attributes)
        given = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, self.inputs, strict=True)
        ]
        tables = [numpy_helper.from_array(c, n) for n, c in zip(known, self.constants, strict=True)]
        made = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
        graph = helper.make_graph([node], "case", given, [made], tables)
        return weft.compile(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), threads=1
        )


def cases() -> dict[str, Case]:
    """Returns the three cases, on seeded numbers."""
    rng = np.random.default_rng(0)
    keys = rng.permutation(10**6).astype(np.float32) / 1024  # no two are equal
    terms, updates = (rng.integers(-8, 9, n).astype(np.float32) for n in (10**7, 10**6))  # of which sums are exact
    table = np.zeros(10**5, np.float32)
    places, sums = rng.integers(0, table.size, updates.size), np.empty_like(terms)

    def added() -> Array:
        made = table.copy()
        np.add.at(made, places, updates)
        return made

    return {
        "argsort of 1e6": Case(
            "TopK",
            [keys],
            [np.array([keys.size])],
            ["", "y"],
            {"largest": 0},
            lambda: np.argsort(keys),
            most=3.0,
        ),
        "cumsum of 1e7": Case(
            "CumSum", [terms], [np.array(0)], ["y"], {}, lambda: np.cumsum(terms, out=sums), share=0.5
        ),
        "scatter_add of 1e6": Case(
            "ScatterElements", [table, places, updates], [], ["y"], {"reduction": "add"}, added, most=2.0
        ),
    }


def times(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Returns the processor seconds of each call: the least of rounds in which they take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS + 1):
        for k, call in enumerate(calls):
            start = process_time()
            call()
            best[k] = min(best[k], process_time() - start)
    return best


def main() -> int:
    """Prints a line for each case; returns the exit code."""
    reading, held = ReadBandwidth(), True
    for name, case in cases().items():
        model = case.compiled()
        (made,) = model.run(case.inputs)
        wanted = case.function()
        np.testing.assert_array_equal(made, wanted)
        ours, theirs = times([partial(model.run, case.inputs, [made]), case.function])
        text = f"{name:20} {ours * 1e3:8.2f} ms, NumPy {theirs * 1e3:8.2f} ms"
        if case.most is not None:
            ratio = ours / theirs
            held &= ratio <= case.most
            print(f"{text}, {ratio:.2f} of its time, at most {case.most:.1f}")
        if case.share is not None:
            speed, memory = 2 * made.nbytes / ours / 1e9, reading.rate(FAR)
            held &= speed >= case.share * memory
            print(f"{text}, {speed:.1f} of {memory:.1f} GB/s, {speed / memory:.2f}, at least {case.share:.1f}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())

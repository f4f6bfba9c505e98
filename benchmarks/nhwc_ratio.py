"""Networks with channels last beside the same networks as ONNX, with channels first: ratios of the processor time of a call.

    ../.venv/bin/python nhwc_ratio.py [--seconds S] [--json FILE] [name ...]      after nhwc_networks.py

One thread. The result of each file's model is compared with Keras's first; then they take turns in rounds, and a ratio is the
median over the rounds. Fails if one is above 1.05.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from time import perf_counter, process_time

import numpy as np

import weft

LIMIT = 1.05
FORMATS = ("onnx", "keras", "pb", "tflite")
OFF = 1e-4
"""How far a result may be from Keras's, relative to the largest element."""

FEWEST = 15
"""Rounds at least."""


def call_of(path: Path, x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """Return a call of a model, whose result is right."""
    model = weft.compile(path, threads=1, shapes={"batch": 1} if path.suffix == ".keras" else None)
    made = np.asarray(model(x))
    made = made if made.shape == y.shape else made.transpose(0, 2, 3, 1)
    off = float(np.abs(made - y).max() / np.abs(y).max())
    if not off <= OFF:
        raise RuntimeError(f"{path.name} is off by {off:.1e}")
    return lambda: model(x)


def turns(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    """Return the processor time of a call of each, round by round; who begins changes."""
    names, taken = list(calls), {name: list[float]() for name in calls}
    end, n = perf_counter() + seconds, 0
    while n < FEWEST or perf_counter() < end:
        for k in range(len(names)):
            name = names[(n + k) % len(names)]
            begin = process_time()
            calls[name]()
            taken[name].append(process_time() - begin)
        n += 1
    return taken


def compare(name: str, folder: Path, seconds: float) -> dict[str, float]:
    """Return the ratios of a network to ONNX's, and its milliseconds as ONNX."""
    with np.load(folder / f"{name}.npz") as held:
        x, y = held["x"], held["y"]
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    calls = {end: call_of(folder / f"{name}.{end}", first if end == "onnx" else x, y) for end in FORMATS}
    taken = turns(calls, seconds)
    ratios = {end: median(a / b for a, b in zip(taken[end], taken["onnx"], strict=True)) for end in FORMATS[1:]}
    return {"onnx_ms": 1e3 * median(taken["onnx"]), **ratios}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "cache" / "nhwc")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to time each network")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args()
    names = given.names or sorted(p.stem for p in given.folder.glob("*.npz"))
    if not names:
        parser.error(f"there are no networks in {given.folder}: run nhwc_networks.py first")
    found: dict[str, dict[str, float]] = {}
    print(f"{'network':18} {'onnx ms':>9} " + " ".join(f"{end:>7}" for end in FORMATS[1:]))
    for name in names:
        found[name] = row = compare(name, given.folder, given.seconds)
        print(f"{name:18} {row['onnx_ms']:9.2f} " + " ".join(f"{row[end]:7.3f}" for end in FORMATS[1:]), flush=True)
    means = [geometric_mean(row[end] for row in found.values()) for end in FORMATS[1:]]
    print(f"{'geometric mean':28} " + " ".join(f"{m:7.3f}" for m in means))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    return int(any(row[end] > LIMIT for row in found.values() for end in FORMATS[1:]))


if __name__ == "__main__":
    sys.exit(main())

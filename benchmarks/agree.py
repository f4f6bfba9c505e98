#!/usr/bin/env python3
"""Check that Weft's outputs agree with ONNX Runtime's on every exported model, on two different inputs each.

    ../.venv/bin/python agree.py [--dir onnx] [MODEL ...]

The interpreter must have both Weft and onnxruntime. Exits with 1 if an output differs by more than --tol of its largest
magnitude, if it differs from run to run, or between one thread and two.
"""

import argparse
import json
import os
import sys

import numpy as np
import onnxruntime
from inputs import make_inputs

import weft

HERE = os.path.dirname(os.path.abspath(__file__))


def as_list(outputs):
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def difference(got, wanted):
    """Return the largest difference relative to an output's largest magnitude."""
    found = 0.0
    for a, b in zip(got, wanted, strict=True):
        if b.size:
            found = max(found, float(np.abs(a.astype(float) - b.astype(float)).max() / max(np.abs(b).max(), 1e-30)))
    return found


def check(path, entry, tol):
    """Return whether a model agrees, and its largest difference."""
    one, two = (weft.compile(path, threads=n, cache=False) for n in (1, 2))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst, steady = 0.0, True
    for variant in range(2):
        x = make_inputs(entry, variant)
        got = as_list(one(**x))
        worst = max(worst, difference(got, session.run(entry["outputs"], x)))
        for again in (as_list(one(**x)), as_list(two(**x))):
            steady = steady and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, again, strict=True))
    return worst <= tol and steady, worst, steady


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*")
    p.add_argument("--dir", default=os.path.join(HERE, "onnx"))
    p.add_argument("--tol", type=float, default=1e-4)
    args = p.parse_args()
    with open(os.path.join(args.dir, "manifest.json")) as file:
        manifest = json.load(file)
    failed = 0
    for name in args.models or manifest:
        ok, worst, steady = check(os.path.join(args.dir, name + ".onnx"), manifest[name], args.tol)
        failed += not ok
        print(f"{name:18s} {worst:.1e} {'' if steady else 'NOT STEADY '}{'ok' if ok else 'DISAGREES'}", flush=True)
    print(f"{len(args.models or manifest) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

"""Run by a Python that has Caffe, of version 3.8: fills a network's blobs, has Caffe save them, and stores what it computes.

python caffe_process.py FOLDER SEED: of net.prototxt it makes net.caffemodel, and values.npz of inputs and outputs.
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["GLOG_minloglevel"] = "2"  # noqa: SIM112 (glog's own name)

import caffe
import numpy as np

KINDS = {"cont": 2, "flags": 2, "rows": 3}
"""Inputs of whole numbers below these."""


def main(folder: str, seed: int) -> None:
    net = caffe.Net(os.path.join(folder, "net.prototxt"), caffe.TEST)
    rng = np.random.default_rng(seed)
    kinds = {name: layer.type for name, layer in net.layer_dict.items()}
    for name, blobs in net.params.items():
        for k, blob in enumerate(blobs):
            shape = blob.data.shape
            fan = int(np.prod(shape[1:])) if len(shape) > 1 else 0
            made = rng.standard_normal(shape) * (np.sqrt(2 / fan) if fan else 0.3)
            if kinds[name] == "BatchNorm":
                made = (rng.normal(0, 0.5, shape), rng.uniform(0.5, 2, shape), np.full(shape, 2.0))[k]
            elif kinds[name] == "Scale" and k == 0:
                made = rng.uniform(0.5, 1.5, shape)
            blob.data[...] = made
    values = run(net, rng, "")
    if {"LSTM", "RNN"} & set(kinds.values()):  # whose sequences go on in the next run
        values.update(run(net, rng, "next_"))
    net.save(os.path.join(folder, "net.caffemodel"))
    np.savez(os.path.join(folder, "values.npz"), **values)


def run(net: caffe.Net, rng: np.random.Generator, prefix: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in net.inputs:
        blob = net.blobs[name].data
        blob[...] = rng.standard_normal(blob.shape) if blob.ndim > 2 else rng.integers(0, 20, blob.shape)
        if name in KINDS:
            blob[...] %= KINDS[name]
        values[prefix + "in/" + name] = blob.copy()
    for name, y in net.forward().items():
        values[prefix + "out/" + name] = y.copy()
    return values


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

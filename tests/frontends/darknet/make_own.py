"""Has Darknet train small networks and save their weights, and stores these with its own results in `own.npz`.

`python -m tests.frontends.darknet.make_own`, where Debian's package `darknet` is installed (that of 2018, the original's). The
library is found at `LIBRARY`, or where the environment's DARKNET says.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import POINTER, Structure, c_char_p, c_float, c_int, c_void_p
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from tests.frontends.darknet.networks import Sections, text_of
from tests.frontends.darknet.own_networks import MAPS, NETWORKS, RECURRENT, steps_of

Array: TypeAlias = Any

LIBRARY = Path(os.environ.get("DARKNET", "/usr/lib/darknet/libdarknet.so"))
PLACE = Path(__file__).parent / "own.npz"


class Matrix(Structure):
    _fields_ = [("rows", c_int), ("cols", c_int), ("vals", POINTER(POINTER(c_float)))]


class Data(Structure):
    _fields_ = [
        ("w", c_int),
        ("h", c_int),
        ("X", Matrix),
        ("y", Matrix),
        ("shallow", c_int),
        ("num_boxes", c_void_p),
        ("boxes", c_void_p),
    ]


class Image(Structure):
    _fields_ = [("w", c_int), ("h", c_int), ("c", c_int), ("data", POINTER(c_float))]


def library() -> ctypes.CDLL:
    """Returns Darknet's library with the types of the functions that are called."""
    d = ctypes.CDLL(str(LIBRARY))
    d.load_network.restype, d.load_network.argtypes = c_void_p, [c_char_p, c_char_p, c_int]
    d.save_weights.restype, d.save_weights.argtypes = None, [c_void_p, c_char_p]
    d.train_network.restype, d.train_network.argtypes = c_float, [c_void_p, Data]
    d.network_predict.restype, d.network_predict.argtypes = POINTER(c_float), [c_void_p, POINTER(c_float)]
    d.get_network_image_layer.restype, d.get_network_image_layer.argtypes = Image, [c_void_p, c_int]
    d.set_batch_network.restype, d.set_batch_network.argtypes = None, [c_void_p, c_int]
    return d


def _matrix(rows: Array) -> Matrix:
    pointers = [row.ctypes.data_as(POINTER(c_float)) for row in rows]
    return Matrix(*rows.shape, (POINTER(c_float) * len(pointers))(*pointers))


def _truths(kind: str, rng: np.random.Generator, count: int, size: int) -> Array:
    """Returns what training is told of images: two boxes of (x, y, w, h, class), or numbers of a detection or of classes."""
    y = np.zeros((count, size), np.float32)
    if kind in ("yolo", "region"):
        y[:, :10] = rng.uniform(0.2, 0.6, (count, 10))
        y[:, 4:10:5] = rng.integers(0, 4, (count, 2))
    elif kind == "detection":
        y[:] = rng.uniform(0.2, 0.6, y.shape)
    else:
        y[np.arange(count), rng.integers(0, size, count)] = 1
    return y


def make(sections: Sections, seed: int, folder: Path) -> tuple[Path, Array, dict[str, Array]]:
    """Returns the path of a network's text, inputs [calls, ...], and what Darknet computes for them, by the outputs' names."""
    d, rng, path = library(), np.random.default_rng(seed), folder / "net.cfg"
    weights = bytes(path.with_suffix(".weights"))
    path.write_text(text_of(sections))
    ctypes.CDLL(None).srand(seed)
    network = d.load_network(bytes(path), None, 0)
    options = sections[0][1]
    shape = [int(options[n]) for n in (("inputs",) if "inputs" in options else ("channels", "height", "width"))]
    steps, truths = steps_of(sections)
    if steps:
        count = steps * int(options["batch"])
        x = rng.random((count, int(np.prod(shape))), np.float32)
        y = _truths(sections[-1][0], rng, count, truths)
        d.train_network(network, Data(0, 0, _matrix(x), _matrix(y), 0, None, None))
    d.save_weights(network, weights)
    network = d.load_network(bytes(path), weights, 0)
    d.set_batch_network(network, 1)
    calls = 3 if any(kind in RECURRENT for kind, _ in sections) else 1
    given = rng.random((calls, *shape), np.float32)
    made: dict[str, list[Array]] = {}
    for x in given:
        last = d.network_predict(network, x.ctypes.data_as(POINTER(c_float)))
        for n, (kind, _) in enumerate(sections[1:]):
            name = f"{kind}_{n}"
            if kind in MAPS:
                image = d.get_network_image_layer(network, n)
                made.setdefault(name, []).append(np.ctypeslib.as_array(image.data, (image.c, image.h, image.w)).copy())
            elif n == len(sections) - 2:
                made.setdefault(name, []).append(np.ctypeslib.as_array(last, (truths,)).copy())
    return path, given, {name: np.stack(ys) for name, ys in made.items()}


def main() -> None:
    stored: dict[str, Array] = {}
    for name, sections in NETWORKS.items():
        with tempfile.TemporaryDirectory() as folder:
            path, x, made = make(sections, 7, Path(folder))
            stored[f"{name}/weights"] = np.frombuffer(path.with_suffix(".weights").read_bytes(), np.uint8)
        stored[f"{name}/x"] = x
        stored |= {f"{name}/{output}": y for output, y in made.items()}
        print(name, {output: (y.shape, float(np.ptp(y))) for output, y in made.items()})
    np.savez_compressed(PLACE, **stored)


if __name__ == "__main__":
    main()

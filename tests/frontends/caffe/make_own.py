"""Has Caffe save networks and run them, and stores their weights with its results in `own.npz`.

`CAFFE_PYTHON=... python -m tests.frontends.caffe.make_own [NAME ...]`, for all networks or those named: the path of a Python
that has Caffe, such as one of version 3.8 with `pip install kendryte-caffe "protobuf<3.21"`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.frontends.caffe.own_networks import NETWORKS
from tests.frontends.caffe.reference import Layer, text_of

PYTHON = os.environ.get("CAFFE_PYTHON", "")
PLACE = Path(__file__).parent / "own.npz"


def make(layers: list[Layer], seed: int, folder: Path) -> dict[str, Any]:
    """Writes a network's text and has Caffe make its weights; returns its inputs and outputs by `in/name` and `out/name`."""
    (folder / "net.prototxt").write_text(text_of("small", layers))
    script = Path(__file__).parent / "caffe_process.py"
    subprocess.run([PYTHON, str(script), str(folder), str(seed)], check=True)
    with np.load(folder / "values.npz") as values:
        return dict(values)


def main(*names: str) -> None:
    stored: dict[str, Any] = {}
    with np.load(PLACE) as held:  # what is not named stays as it is
        stored |= {key: a for key, a in held.items() if names and key.split(":")[0] not in names}
    for name, layers in NETWORKS.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = make(layers, 7, Path(folder))
            made["weights"] = np.frombuffer((Path(folder) / "net.caffemodel").read_bytes(), np.uint8)
        stored |= {f"{name}:{key}": a for key, a in made.items()}
    np.savez_compressed(PLACE, **stored)


if __name__ == "__main__":
    main(*sys.argv[1:])

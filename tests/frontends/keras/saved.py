"""Archives as Keras saves them, made of configurations and arrays without Keras."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
FOLDER = Path(__file__).parent / "networks"


def layer(kind: str, name: str = "", **config: Any) -> dict[str, Any]:
    """Returns the configuration of a layer."""
    return {"module": "keras.layers", "class_name": kind, "config": {"name": name or kind.lower(), **config}}


def sequence(shape: Sequence[int | None], *layers: dict[str, Any]) -> dict[str, Any]:
    """Returns the configuration of a sequential model with inputs of *shape*."""
    given = layer("InputLayer", "x", batch_shape=[None, *shape], dtype="float32")
    return {"class_name": "Sequential", "config": {"name": "model", "layers": [given, *layers]}}


def archive(config: Any, weights: Mapping[str, Array] | None = None) -> bytes:
    """Returns an archive of a configuration and arrays by their paths."""
    stored, whole = io.BytesIO(), io.BytesIO()
    with h5py.File(stored, "w") as file:
        for path, array in (weights or {}).items():
            file[path] = array
    with zipfile.ZipFile(whole, "w") as made:
        made.writestr("config.json", config if isinstance(config, bytes) else json.dumps(config))
        made.writestr("model.weights.h5", stored.getvalue())
    return whole.getvalue()


def parts_of(name: str) -> tuple[dict[str, Any], bytes]:
    """Returns the configuration and the file of weights of a network beside this file."""
    with zipfile.ZipFile(FOLDER / name) as held:
        return json.loads(held.read("config.json")), held.read("model.weights.h5")

"""What is damaged of each format: models that tests have or make, and the ways to damage their files."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from tests.frontends.caffe import networks as caffe
from tests.frontends.coreml.messages import array, network
from tests.frontends.coreml.test_layers import CASES as LAYERS
from tests.frontends.darknet import networks as darknet
from tests.frontends.fuzz.bytes_at_random import damaged_bytes, damaged_numbers
from tests.frontends.fuzz.files import Damage, Files, one, tree
from tests.frontends.fuzz.json_values import damaged_json
from tests.frontends.fuzz.messages import damaged_message
from tests.frontends.fuzz.texts import damaged_text
from tests.frontends.mxnet.saved import params
from tests.frontends.onnx.mutations import damaged_model
from tests.frontends.onnx.test_onnx_cases import cases
from tests.frontends.tensorflow.test_operators import ARRAYS, unpacked
from tests.frontends.tflite.test_operators import MODELS

from weft.support.lazy_import import resolve

FRONTENDS: Final = Path(__file__).parents[1]


@dataclass(frozen=True)
class Format:
    """The models of a format, and how its files are damaged, by the ends of their names."""

    models: Callable[[], list[Files]]
    damages: Mapping[str, tuple[Damage, ...]]

    @cached_property
    def seeds(self) -> list[Files]:
        """The models as they are before."""
        return self.models()

    def damaged(self, rng: random.Random) -> Files:
        """Returns one of the models with one of its files damaged."""
        whole = rng.choice(self.seeds)
        path = rng.choice(sorted(p for p in whole.parts if self._of(p)))
        return whole._replace(parts={**whole.parts, path: rng.choice(self._of(path))(rng, whole.parts[path])})

    def _of(self, path: str) -> tuple[Damage, ...]:
        return next((how for end, how in self.damages.items() if path.endswith(end)), ())


def _onnx() -> list[Files]:
    models = [c.model for held in cases().values() for c in held]
    return [one(m.SerializeToString()) for m in models if m is not None]


def _tensorflow() -> list[Files]:
    arrays = ARRAYS | unpacked("flow")
    graphs = [one(a.tobytes(), "frozen.pb") for name, a in arrays.items() if name.endswith(".graph")]
    saved = tree(FRONTENDS / "tensorflow" / "cases" / "small")
    return [*graphs, *[saved] * (len(graphs) // 4)]


def _tflite() -> list[Files]:
    lookups = [one(np.load(p)["model"].tobytes()) for p in sorted((FRONTENDS / "tflite" / "lookups").glob("*.npz"))]
    return [*[one(m) for m in MODELS.values()], *_found("tensorflow", "*.tflite") * 9, *lookups * 2]


def _coreml() -> list[Files]:
    folder = FRONTENDS / "coreml" / "networks"
    layers = [one(network(array("x", 2, 4, 6), made)) for made, _ in LAYERS.values()]
    return [
        *[tree(p) for p in sorted(folder.parent.rglob("*.mlpackage"))] * 8,
        *_found("coreml", "*.mlmodel") * 4,
        *layers,
    ]


def _mxnet() -> list[Files]:
    folder = FRONTENDS / "mxnet" / "networks"
    made: list[Files] = []
    for path in sorted(folder.glob("*.npz")):
        files = (f"{path.stem}-symbol.json", f"{path.stem}-0000.params")
        with np.load(path) as held:
            made.append(tree(folder, files[0], files)._replace(shapes={"data": held["x"].shape}))
    shapes = {"x": (20, 2, 3), "h": (2, 3), "a": (1,), "b": (2, 3)}
    for path in sorted((folder.parent / "control_flow").glob("*.json")):
        text, weights = path.read_bytes(), params({"w": np.ones((2, 3), np.float32)})
        named = {n: s for n, s in shapes.items() if f'"name": "{n}"'.encode() in text}
        parts = {path.name: text, f"{path.name.removesuffix('-symbol.json')}-0000.params": weights}
        made += [Files(path.name, parts, named)] * 2
    return made


def _caffe() -> list[Files]:
    with tempfile.TemporaryDirectory() as made:
        return [
            tree(Path(made), caffe.write(layers, Path(made), caffe.image_of(layers))[0].name)
            for layers in caffe.NETWORKS.values()
        ]


def _darknet() -> list[Files]:
    with tempfile.TemporaryDirectory() as made:
        return [
            tree(Path(made), darknet.write(sections, Path(made), darknet.image_of(sections))[0].name)
            for sections in darknet.NETWORKS.values()
        ]


def _found(frontend: str, pattern: str) -> list[Files]:
    return [one(p.read_bytes(), p.name) for p in sorted((FRONTENDS / frontend).rglob(pattern))]


def _made(place: str) -> Callable[[], list[Files]]:
    """Returns models that a framework makes, which is imported then."""

    def models() -> list[Files]:
        found: list[Files] = resolve(f"tests.frontends.fuzz.{place}")()
        return found

    return models


def _archive(rng: random.Random, data: bytes) -> bytes:
    how: Damage = resolve("tests.frontends.fuzz.archives:damaged_archive")
    return how(rng, data)


def _hdf5(rng: random.Random, data: bytes) -> bytes:
    how: Damage = resolve("tests.frontends.fuzz.archives:damaged_hdf5")
    return how(rng, data)


_RANDOM: Final = (damaged_bytes, damaged_numbers)
_MESSAGE: Final = (damaged_message,) * 7 + _RANDOM[:1]
_TEXT: Final = (damaged_text,)
FORMATS: Final[dict[str, Format]] = {
    "onnx": Format(_onnx, {"": (damaged_model,) * 7 + _RANDOM[:1]}),
    "tensorflow": Format(_tensorflow, {".pb": _MESSAGE, "": _RANDOM}),
    "tflite": Format(_tflite, {"": (damaged_numbers, damaged_numbers, damaged_bytes)}),
    "coreml": Format(_coreml, {".json": (damaged_json,), ".bin": _RANDOM, "": _MESSAGE}),
    "mxnet": Format(_mxnet, {".json": (damaged_json, damaged_json, damaged_text), "": _RANDOM}),
    "keras": Format(lambda: _found("keras", "*.keras"), {"": (_archive,)}),
    "h5": Format(lambda: _found("keras", "*.h5"), {"": (_hdf5,)}),
    "torch": Format(_made("torch_programs:programs"), {"": (_archive,)}),
    "stablehlo": Format(lambda: _found("jax", "*.mlir"), {"": _TEXT}),
    "bytecode": Format(_made("jax_functions:bytecodes"), {"": _RANDOM}),
    "darknet": Format(_darknet, {".cfg": _TEXT, "": _RANDOM}),
    "caffe": Format(_caffe, {".prototxt": _TEXT, "": _MESSAGE}),
}
"""Formats by name. A model of several files has one of them damaged."""

"""The names of each format's operators that tests' models use: read from stored models and lists of cases, none of which is run.

A reader returns all names that it finds, among them some that are no operator's: what counts is which names of a table it lacks.
"""

from __future__ import annotations

import importlib
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.frontends.caffe import networks as of_caffe
from tests.frontends.caffe import own_networks as by_caffe
from tests.frontends.coreml.test_layers import CASES as OLD_LAYERS
from tests.frontends.coreml.test_layers import RECURRENT
from tests.frontends.darknet import networks as of_darknet
from tests.frontends.darknet import own_networks, test_recurrent
from tests.frontends.mxnet.test_operators import CASES as OF_MXNET

from weft.frontends.coreml.layer_table import NAMES as LAYERS
from weft.frontends.protobuf_message import Message
from weft.frontends.tflite.lite_model import read_model

FOLDER: Final = Path(__file__).parent


def arrays_of(path: Path) -> Iterator[tuple[str, Any]]:
    """Yields the arrays of an archive, compressed as a whole or not, with their names."""
    raw = path.read_bytes()
    with np.load(io.BytesIO(lzma.decompress(raw) if path.suffix == ".xz" else raw)) as archive:
        yield from archive.items()


def bytes_in(folder: str, ending: str) -> Iterator[bytes]:
    """Yields the bytes of arrays whose names end so, in the archives of *folder*."""
    for path in sorted((FOLDER / folder).rglob("*.npz*")):
        for name, array in arrays_of(path):
            if name.endswith(ending) and array.dtype == np.uint8:
                yield array.tobytes()


def _coreml() -> Iterator[Message]:
    models = [*bytes_in("coreml", ":model"), *(p.read_bytes() for p in (FOLDER / "coreml").rglob("*.mlmodel"))]
    yield from (Message(memoryview(m)) for m in models)


def of_programs() -> set[str]:
    """Core ML's programs: types of operations, in blocks of functions and of operations."""
    found, waiting = set[str](), list[Message]()
    for m in _coreml():
        waiting += [b for _, f in m.inner(502).entries(2) for _, b in f.entries(3)]
    while waiting:
        for o in waiting.pop().messages(3):
            found.add(o.text(1))
            waiting += o.messages(4)
    return found


def of_networks() -> set[str]:
    """Core ML's neural networks: which field has the parameters of a layer."""
    layers = [layer for m in _coreml() for layer in m.inner(500).messages(1)]
    layers += [Message(memoryview(made)) for made, _ in [*OLD_LAYERS.values(), *RECURRENT.values()]]
    return {LAYERS.get(number, "") for layer in layers for number in layer.field_numbers}


def _of_symbol(symbol: Mapping[str, Any]) -> Iterator[str]:
    for node in symbol["nodes"]:
        yield node["op"]
        for inner in node.get("subgraphs", []):
            yield from _of_symbol(inner)


def of_mxnet() -> set[str]:
    """MXNet: the operators of nodes, of symbols inside of them too."""
    texts = [*bytes_in("mxnet", ":symbol"), *(p.read_bytes() for p in (FOLDER / "mxnet").rglob("*-symbol.json"))]
    return {op for t in texts for op in _of_symbol(json.loads(t))} | {op for op, *_ in OF_MXNET.values()}


def of_darknet_sections() -> set[str]:
    """Darknet: the types of sections."""
    every = [*of_darknet.NETWORKS.values(), *own_networks.NETWORKS.values()]
    made = {kind for sections in every for kind, _ in sections}
    return made | {name.partition(".")[0] for name in test_recurrent.CASES}


def of_caffe_layers() -> set[str]:
    """Caffe: the types of layers."""
    every = [*of_caffe.NETWORKS.values(), *by_caffe.NETWORKS.values()]
    return {layer.type for layers in every for layer in layers}


def _of_graph(graph: Message) -> Iterator[str]:
    """Yields the operators of a graph of TensorFlow, and of its functions."""
    yield from (node.text(2) for node in graph.messages(1))
    for function in graph.inner(2).messages(1):
        yield from (node.text(2) for node in function.messages(3))


def of_tensorflow() -> set[str]:
    """TensorFlow: the operators of nodes, of functions too."""
    graphs = [Message(memoryview(g)) for g in bytes_in("tensorflow", "graph")]
    for path in (FOLDER / "tensorflow").rglob("*.pb"):
        found = Message(memoryview(path.read_bytes()))
        graphs += [m.inner(2) for m in found.messages(2)] if path.name == "saved_model.pb" else [found]
    return {op for g in graphs for op in _of_graph(g)}


def of_tensorflow_lite() -> set[str]:
    """TensorFlow Lite: the operators of all subgraphs."""
    models = [*bytes_in("tensorflow", ".model"), *bytes_in("tflite", "model")]
    models += [p.read_bytes() for p in FOLDER.rglob("*.tflite")]
    return {o.kind for m in models for s in read_model(m).subgraphs for o in s.operators}


def _of_configuration(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (
            f"{prefix}{part['class_name']}" for prefix in ("", "ops.") if isinstance(part.get("class_name"), str)
        )
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _of_configuration(inner)


def of_keras() -> set[str]:
    """Keras: the classes of layers and operators in configurations."""
    found = set[str]()
    for path in (FOLDER / "keras" / "networks").glob("*.keras"):
        with zipfile.ZipFile(path) as archive:
            found.update(_of_configuration(json.loads(archive.read("config.json"))))
    for path in (FOLDER / "keras" / "networks").glob("*.h5"):
        with importlib.import_module("h5py").File(path) as held:
            found.update(_of_configuration(json.loads(held.attrs["model_config"])))
    return found


_OPERATION: Final = re.compile(
    r'(?:stablehlo|chlo|mhlo|func)\.([a-z_0-9]+)"?(?:\s*(@[\w.]+)|[^\n]*call_target_name = "([^"]+)")?'
)


def of_jax() -> set[str]:
    """StableHLO: operations in stored texts, in tests' sources, and in what JAX lowers the lists of functions to."""
    jax = importlib.import_module("jax")
    texts = [p.read_text() for p in (FOLDER / "jax").rglob("*") if p.suffix in (".mlir", ".py")]
    for module, tables in (
        ("functions", ("CASES", "FACTORS")),
        ("complex_functions", ("CASES",)),
        ("further_functions", ("FUNCTIONS",)),
    ):
        found = importlib.import_module(f"tests.frontends.jax.{module}")
        for function, given in (case for name in tables for case in getattr(found, name).values()):
            texts.append(jax.jit(function, keep_unused=True).lower(*given).as_text())
    factors = importlib.import_module("tests.frontends.jax.functions").FACTORS
    with jax.enable_x64(True):
        for function, given in factors.values():
            texts.append(jax.jit(function).lower(*[a.astype(np.float64) for a in given]).as_text())
    for name in ("cholesky", "triangles from the left"):  # for other devices than a CPU, as a test has them
        function, given = factors[name]
        texts.append(jax.export.export(jax.jit(function), platforms=["tpu"])(*given).mlir_module())
    return {name for text in texts for line in text.splitlines() for name in _of_line(line)}


def _of_line(line: str) -> Iterator[str]:
    for match in _OPERATION.finditer(line):
        yield from (match[1], f"custom_call {match[2]}", f"custom_call @{match[3]}")
        if "complex<" in line:
            yield f"complex {OF_PAIRS.get(match[1], match[1])}"


OF_PAIRS: Final = {"complex": "joined", "real": "taken_apart", "imag": "taken_apart"}
"""The names in the table of operations that make pairs of real values, and take them apart."""

READERS: Final[Mapping[str, Callable[[], set[str]]]] = {
    "TensorFlow": of_tensorflow,
    "TensorFlow Lite": of_tensorflow_lite,
    "Keras": of_keras,
    "Core ML: programs": of_programs,
    "Core ML: neural networks": of_networks,
    "MXNet": of_mxnet,
    "Darknet": of_darknet_sections,
    "Caffe": of_caffe_layers,
    "StableHLO (JAX)": of_jax,
}
"""A reader for each format, by its title on the page of operators."""

#!/usr/bin/env python3
"""Write the benchmark's fixed set of models as ONNX files: static shapes, float32, NCHW, seeded weights, no downloads.

    python models.py [DIRECTORY [name ...]]    all of them, or only some; into onnx
    python models.py --small DIRECTORY         the eight networks with few layers and small inputs, for tests
    python models.py --list

The directory gets NAME.onnx for each and one manifest.json: inputs (name, shape, dtype, how they are filled),
outputs, floating-point operations (2 a multiply-add, counted on the ONNX graph), bytes, SHA-256. ``inputs.make_inputs``
makes the seeded inputs of a manifest entry. Batch normalizations stay nodes of their own and attention is written out
as matrix products and softmax, so that folding and fusing are the compiler's work.
"""

import argparse
import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import networks
import onnx
import torch
from convolutions import CONVOLUTIONS, DEPTHWISE
from inputs import Entry, make_inputs, seed_of
from torch import nn

OPSET = 17

GEMMS = (256, 512, 1024, 2048)


@dataclass(frozen=True)
class Model:
    """How to make a network, and the names and shapes of what goes in and comes out.

    The first dimension of an input is the batch, but of those that all rows share.
    """

    make: Callable[[], nn.Module]
    inputs: list[Entry]
    outputs: list[str]
    shared: tuple[str, ...] = ()

    def of_batch(self, batch: int) -> "Model":
        """Return the same network for so many rows."""
        inputs = [e if e["name"] in self.shared else e | {"shape": [batch, *e["shape"][1:]]} for e in self.inputs]
        return replace(self, inputs=inputs)


def floats(name: str, *shape: int, **facts: float) -> Entry:
    return {"name": name, "shape": list(shape), "dtype": "float32", **facts}


def integers(name: str, *shape: int, low: int = 0, high: int) -> Entry:
    return {"name": name, "shape": list(shape), "dtype": "int64", "range": [low, high]}


def language_models() -> dict[str, Model]:
    state = [floats(name, 1, 650, scale=0.5) for name in ("h0", "c0", "h1", "c1")]
    cache = [floats(f"past_{x}{n}", 1, 12, 256, 64) for n in range(12) for x in "kv"]
    text = [integers("input_ids", 1, 128, high=30522), integers("token_type_ids", 1, 128, high=2)]
    mask = integers("attention_mask", 1, 128, low=1, high=2)
    step = [integers("ids", 1, 1, high=50257), integers("pos", 1, low=256, high=257)]
    return {
        "lstm_lm": Model(
            networks.LstmStep,
            [integers("tok", 1, high=10000), *state],
            ["logits", "h0o", "c0o", "h1o", "c1o"],
        ),
        "bert_base": Model(networks.Bert, [*text, mask], ["hidden", "pooled"]),
        "gpt2_decode256": Model(
            networks.Gpt2Decode, [*step, *cache], ["logits", *(f"{x}{n}" for n in range(12) for x in "kv")], ("pos",)
        ),
    }


def single_operators() -> dict[str, Model]:
    models = {}
    for name, (size, inner, outer, kernel, stride) in CONVOLUTIONS.items():
        make = partial(nn.Conv2d, inner, outer, kernel, stride, (kernel - 1) // 2, bias=False)
        models["op_" + name] = Model(make, [floats("x", 1, inner, size, size)], ["y"])
    for name, (size, channels, stride) in DEPTHWISE.items():
        make = partial(nn.Conv2d, channels, channels, 3, stride, 1, groups=channels, bias=False)
        models["op_" + name] = Model(make, [floats("x", 1, channels, size, size)], ["y"])
    for n in GEMMS:
        a, b = floats("a", n, n), floats("b", n, n)
        models[f"op_gemm{n}"] = Model(partial(networks.Gemm, n), [a], ["y"])
        models[f"op_gemmdyn{n}"] = Model(networks.GemmDynamic, [a, b], ["y"])
    return models


IMAGE = [floats("x", 1, 3, 224, 224)]
MODELS = {
    "resnet18": Model(partial(networks.ResNet, (2, 2, 2, 2)), IMAGE, ["y"]),
    "mobilenet_v1": Model(networks.MobileNet, IMAGE, ["y"]),
    "dqn": Model(networks.dqn, [floats("x", 1, 4, 84, 84)], ["y"]),
    "dcgan": Model(networks.dcgan, [floats("x", 1, 100, 1, 1)], ["y"]),
    "mlp": Model(networks.mlp, [floats("x", 64, 1024)], ["y"]),
    **language_models(),
    **single_operators(),
}


PICTURE = [floats("x", 1, 3, 64, 64)]
SMALL = {
    **MODELS,
    "resnet18": Model(partial(networks.ResNet, (1, 1, 1, 1)), PICTURE, ["y"]),
    "mobilenet_v1": Model(networks.MobileNet, PICTURE, ["y"]),
    "mlp": Model(networks.mlp, [floats("x", 4, 1024)], ["y"]),
    "lstm_lm": Model(
        partial(networks.LstmStep, 100, 64),
        [integers("tok", 1, high=100), *(floats(name, 1, 64, scale=0.5) for name in ("h0", "c0", "h1", "c1"))],
        ["logits", "h0o", "c0o", "h1o", "c1o"],
    ),
    "bert_base": Model(
        partial(networks.Bert, layers=1, tokens=16),
        [integers(n, 1, 16, high=2) for n in ("input_ids", "token_type_ids", "attention_mask")],
        ["hidden", "pooled"],
    ),
    "gpt2_decode256": Model(
        partial(networks.Gpt2Decode, layers=1, vocabulary=500),
        [
            integers("ids", 1, 1, high=500),
            integers("pos", 1, low=16, high=17),
            *(floats(f"past_{x}0", 1, 12, 16, 64) for x in "kv"),
        ],
        ["logits", "k0", "v0"],
        ("pos",),
    ),
}
"""The networks with fewer layers, smaller inputs and smaller vocabularies."""
NETWORKS = [name for name in MODELS if not name.startswith("op_")]


def build(name: str, model: Model) -> nn.Module:
    """Return the network ready for inference, with its seeded weights."""
    torch.manual_seed(seed_of(name))
    return networks.initialize(model.make()).requires_grad_(False)


def count_flops(model: onnx.ModelProto) -> dict[str, int]:
    """Return operator type -> 2 times its multiply-adds, of convolutions and matrix products."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {i.name: list(i.dims) for i in graph.initializer}
    for value in [*graph.value_info, *graph.input, *graph.output]:
        shapes.setdefault(value.name, [d.dim_value for d in value.type.tensor_type.shape.dim])
    flops: Counter[str] = Counter()
    for node in graph.node:
        if node.op_type == "Conv":
            count = math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type == "ConvTranspose":
            count = math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("MatMul", "Gemm"):
            count = math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
        else:
            continue
        flops[node.op_type] += 2 * count
    return dict(flops)


def export(name: str, model: Model, directory: Path) -> Entry:
    """Write one model; return its manifest entry."""
    entry: Entry = {"name": name, "inputs": model.inputs, "outputs": model.outputs, "opset": OPSET}
    path = directory / f"{name}.onnx"
    module = write(entry, model, path)
    proto = onnx.load(path)
    by_operator = count_flops(proto)
    return entry | {
        "flops": sum(by_operator.values()),
        "flops_by_op": by_operator,
        "ops": dict(Counter(node.op_type for node in proto.graph.node)),
        "params": sum(p.numel() for p in module.parameters()),
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def write(entry: Entry, model: Model, path: Path) -> nn.Module:
    """Write the model of a manifest entry; return it as a module."""
    module, arrays = build(entry["name"], model), make_inputs(entry)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(torch.from_numpy(arrays[spec["name"]]) for spec in model.inputs),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            training=torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=True,
            input_names=[spec["name"] for spec in model.inputs],
            output_names=model.outputs,
        )
    proto = onnx.load(path)
    for node in proto.graph.node:  # source locations are no part of the model
        node.doc_string = ""
    onnx.checker.check_model(proto)
    onnx.save(proto, path)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--small", action="store_true", help="write the networks made small")
    parser.add_argument("directory", type=Path, nargs="?", default=Path(__file__).parent / "onnx")
    parser.add_argument("names", nargs="*", metavar="name")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    manifest_path = options.directory / "manifest.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    models = SMALL if options.small else MODELS
    for name in options.names or (NETWORKS if options.small else MODELS):
        entry = manifest[name] = export(name, models[name], options.directory)
        sizes = (
            f"{entry['flops'] / 1e9:9.4f} GFLOP  {entry['params'] / 1e6:8.3f} Mparam  {entry['bytes'] / 1e6:8.2f} MB"
        )
        print(f"{name:18s} {sizes}  {entry['sha256'][:12]}  {entry['ops']}", flush=True)
        manifest_path.write_text(json.dumps(manifest, indent=1))


if __name__ == "__main__":
    main()

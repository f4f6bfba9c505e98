"""Weft beside the better of ONNX Runtime and OpenVINO on architectures of the package transformers, none of which is in a table.

    ../.venv/bin/python architectures.py [--networks segformer,swin] [--threads 1] [--seconds 2] [--json FILE]

The networks have the widths that are in use and few layers, with random weights of a fixed seed. Each is exported to ONNX by
PyTorch, compared in all engines, and timed in turns; the ratio is that of processor time for one thread, of wall time for more.
It needs `pip install torch transformers onnxruntime openvino`; nothing is downloaded. Exits with 1 if an engine disagrees.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import torch
import transformers

from weft.cli.bench.measure import TOLERANCE, measure, ratio, row

IMAGE = (1, 3, 224, 224)
PEERS = ("onnxruntime", "openvino")
SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
WIDE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
NAMED = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}

NETWORKS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "albert": ("AlbertModel", {**WIDE, "num_hidden_layers": 3}, (1, 64)),
    "bart": ("models.bart.modeling_bart.BartEncoder", NAMED, (1, 64)),
    "clip": ("CLIPVisionModel", {**SMALL, "num_hidden_layers": 4}, IMAGE),
    "convnext": ("ConvNextModel", {"depths": [2, 2, 2, 2]}, IMAGE),
    "convnextv2": ("ConvNextV2Model", {"depths": [2, 2, 2, 2], "hidden_sizes": [40, 80, 160, 320]}, IMAGE),
    "deberta": ("DebertaV2Model", {**SMALL, "num_hidden_layers": 3}, (1, 64)),
    "distilbert": ("DistilBertModel", {"n_layers": 3}, (1, 128)),
    "efficientnet": (
        "EfficientNetModel",
        {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280},
        IMAGE,
    ),
    "electra": ("ElectraModel", {"num_hidden_layers": 6}, (1, 128)),
    "focalnet": ("FocalNetModel", {"depths": [2, 2, 2, 2]}, IMAGE),
    "levit": ("LevitModel", {}, IMAGE),
    "mobilebert": ("MobileBertModel", {"num_hidden_layers": 6}, (1, 128)),
    "mobilenet_v2": ("MobileNetV2Model", {}, IMAGE),
    "mobilevit": ("MobileViTModel", {"image_size": 256}, (1, 3, 256, 256)),
    "poolformer": ("PoolFormerModel", {}, IMAGE),
    "pvt": ("PvtModel", {}, IMAGE),
    "regnet": ("RegNetModel", {"hidden_sizes": [48, 104, 208, 440], "depths": [1, 3, 6, 2], "groups_width": 8}, IMAGE),
    "resnet50": ("ResNetModel", {}, IMAGE),
    "segformer": ("SegformerForSemanticSegmentation", {}, (1, 3, 256, 256)),
    "squeezebert": ("SqueezeBertModel", {"num_hidden_layers": 4}, (1, 64)),
    "swin": ("SwinModel", {"depths": [2, 2, 2, 2]}, IMAGE),
    "swin2sr": (
        "Swin2SRForImageSuperResolution",
        {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
        (1, 3, 64, 64),
    ),
    "t5": ("T5EncoderModel", {"num_layers": 4}, (1, 64)),
    "vit": ("ViTModel", {**SMALL, "num_hidden_layers": 6}, IMAGE),
    "wav2vec2": ("Wav2Vec2Model", {**SMALL, "num_hidden_layers": 3}, (1, 16000)),
    "whisper": ("models.whisper.modeling_whisper.WhisperEncoder", NAMED, (1, 80, 3000)),
}
"""The class of each network in transformers, the fields of its configuration that are set, and the shape of its input."""

VOCABULARY = 1000
"""Tokens of two-dimensional inputs are below it."""


class First(torch.nn.Module):
    """A network as a function of its input alone, which returns its first output."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> Any:
        made = self.network(x)
        return made.to_tuple()[0] if hasattr(made, "to_tuple") else made[0]


def export(name: str, path: Path) -> None:
    """Write a network as an ONNX file."""
    class_name, fields, shape = NETWORKS[name]
    found: Any = transformers
    for part in class_name.split("."):
        found = getattr(found, part)
    torch.manual_seed(0)
    network = found(found.config_class(**fields)).eval()
    network.set_attn_implementation("eager")
    is_text = len(shape) == 2 and shape[1] < VOCABULARY
    x = torch.randint(0, VOCABULARY, shape) if is_text else torch.randn(shape)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            First(network), (x,), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"]
        )


def compare(name: str, threads: int, seconds: float) -> dict[str, Any]:
    """Return the figures of all engines on one network, and the ratio of Weft's time to the better peer's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        export(name, path)
        ours, *peers = measure(path, PEERS, threads, seconds)
    found = [row(name, t, ours, threads) for t in (ours, *peers)]
    best = max(1 / ratio(t, ours, cpu=threads == 1) for t in peers)
    return {"model": name, "ratio": best, "engines": found}


def main() -> int:
    """Compare the networks asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = []
    for name in asked.networks.split(","):
        r = compare(name, asked.threads, asked.seconds)
        rows.append(r)
        times = " ".join(f"{e['engine']} {e['median_ms']:.2f} ms" for e in r["engines"])
        print(f"{name:<14} {r['ratio']:.2f}  {times}", flush=True)
    ratios = [r["ratio"] for r in rows]
    print(f"geometric mean {geometric_mean(ratios):.3f}, worst {max(ratios):.2f}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1))
    return int(any(e["rel_err"] > TOLERANCE for r in rows for e in r["engines"]))


if __name__ == "__main__":
    sys.exit(main())

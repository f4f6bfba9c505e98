"""Has coremltools convert modules of PyTorch to the models of `networks/`, with inputs and PyTorch's outputs beside them; and
one with states to `stateful/`, with what it is called with, and returns, three times in turn.

Run it by a Python that has coremltools 9 and torch: `python tests/frontends/coreml/make_networks.py`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import coremltools as ct
import numpy as np
import torch
from torch import nn

FOLDER = Path(__file__).parent / "networks"
STATEFUL = Path(__file__).parent / "stateful"


class Residual(nn.Module):  # type: ignore[misc]
    """Convolutions with normalisation, a residual sum, pools."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.inner = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 8, 1), nn.Hardtanh(0.0, 6.0))
        self.last = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = nn.functional.max_pool2d(self.first(x), 2)
        x = x + self.inner(x)
        return torch.softmax(self.last(nn.functional.avg_pool2d(x, 4).flatten(1)), 1)


class Segmenter(nn.Module):  # type: ignore[misc]
    """A transposed convolution, resampling, concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.slope = nn.PReLU(4, 0.3)

    def forward(self, x: Any) -> Any:
        low = nn.functional.leaky_relu(self.down(x), 0.1)
        near = nn.functional.interpolate(low, scale_factor=2.0, mode="nearest")
        smooth = nn.functional.interpolate(low, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.cat([self.slope(self.up(low)), near, torch.sigmoid(smooth)], 1)


class Attention(nn.Module):  # type: ignore[misc]
    """A layer of a transformer, of positions that are embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.norm, self.after = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        q, k, v = (t.reshape(1, 7, 4, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = torch.softmax(q @ k.transpose(-1, -2) / 2, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(1, 7, 16))
        return x + self.mlp(self.after(x))


class Encoder(nn.Module):  # type: ignore[misc]
    """A layer of a transformer without its embedding, and the mean of its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.after = nn.LayerNorm(12), nn.LayerNorm(12)
        self.q, self.k, self.v, self.out = (nn.Linear(12, 12) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 12))

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        q, k, v = (m(y).reshape(1, 5, 3, 4).permute(0, 2, 1, 3) for m in (self.q, self.k, self.v))
        scores = torch.softmax(q @ k.transpose(2, 3) * 0.5, -1)
        x = x + self.out((scores @ v).permute(0, 2, 1, 3).reshape(1, 5, 12))
        return torch.tanh((x + self.mlp(self.after(x))).mean(1))


class Stylist(nn.Module):  # type: ignore[misc]
    """Images normalised by themselves, borders reflected, channels split, gated and shuffled to pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True)
        self.second, self.slope = nn.Conv2d(4, 8, 3, stride=2), nn.PReLU(8)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.first(nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")))
        a, b = y.chunk(2, 1)
        y = self.slope(self.second(nn.functional.elu(a) * torch.sigmoid(b)))
        gate = torch.exp(-y.abs().amax((2, 3), keepdim=True))
        return torch.tanh(nn.functional.avg_pool2d(y * gate, 2)[:, 1:7:2] - y.mean())


class Recurrent(nn.Module):  # type: ignore[misc]
    """Recurrent layers, of which one runs both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        y, _ = self.gru(self.lstm(x)[0])
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)


class Memories(nn.Module):  # type: ignore[misc]
    """Layers of long short-term memory, of which some run both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.both, self.last = nn.LSTM(4, 5, 2, bidirectional=True), nn.LSTM(10, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.both(x)[0])[0]


class Cache(nn.Module):  # type: ignore[misc]
    """A row of a state written over, and a state added to."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(1, 6, 4, dtype=torch.float16))
        self.register_buffer("total", torch.zeros(4, dtype=torch.float16))

    def forward(self, x: Any) -> Any:
        self.cache[:, 2:3, :] = self.linear(x).half()
        self.total.add_(x[0, 0].half())
        return self.cache.float().sum(1) + self.total.float()


NETWORKS = {
    "residual": (Residual, (1, 3, 16, 16)),
    "segmenter": (Segmenter, (1, 3, 12, 10)),
    "attention": (Attention, None),
    "recurrent": (Recurrent, (2, 6, 6)),
    "encoder": (Encoder, (1, 5, 12)),
    "memories": (Memories, (6, 1, 4)),
    "stylist": (Stylist, (1, 3, 11, 9)),
}


def calibrated(module: nn.Module) -> nn.Module:
    """Gives normalisations means and variances that are not those they begin with."""
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.uniform_(-0.3, 0.3)
            m.running_var.uniform_(0.5, 1.5)
    return module.eval()


def main() -> None:
    for name in sys.argv[1:] or NETWORKS:
        kind, shape = NETWORKS[name]
        torch.manual_seed(len(name))
        module = calibrated(kind())
        x = torch.randint(0, 20, (1, 7)) if shape is None else torch.randn(shape)
        with torch.no_grad():
            wanted = module(x).numpy()
            traced = torch.jit.trace(module, x)
        kind_ = np.int32 if shape is None else np.float32
        given = [ct.TensorType(name="x", shape=x.shape, dtype=kind_)]
        program = ct.convert(
            traced,
            inputs=given,
            outputs=[ct.TensorType(name="y")],
            convert_to="mlprogram",
            compute_precision=ct.precision.FLOAT32,
            minimum_deployment_target=ct.target.iOS15,
        )
        shutil.rmtree(FOLDER / f"{name}.mlpackage", ignore_errors=True)
        program.save(str(FOLDER / f"{name}.mlpackage"))
        network = ct.convert(traced, inputs=given, outputs=[ct.TensorType(name="y")], convert_to="neuralnetwork")
        network.save(str(FOLDER / f"{name}.mlmodel"))
        np.savez_compressed(FOLDER / f"{name}.npz", x=x.numpy().astype(kind_), y=wanted)


def save_classifier() -> None:
    """Saves a classifier of images, whose channels it scales, and which names the likeliest class."""
    torch.manual_seed(1)
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3), nn.Softmax(1)
    ).eval()
    pixels = torch.randint(0, 256, (1, 3, 8, 8)).float()
    with torch.no_grad():
        wanted = module(pixels / 127.5 - 1).numpy()
    for ending, kind in (("mlpackage", "mlprogram"), ("mlmodel", "neuralnetwork")):
        place = FOLDER / f"classifier.{ending}"
        shutil.rmtree(place, ignore_errors=True)
        options = {"compute_precision": ct.precision.FLOAT32} if kind == "mlprogram" else {}
        ct.convert(
            torch.jit.trace(module, pixels),
            inputs=[ct.ImageType(name="x", shape=pixels.shape, scale=1 / 127.5, bias=[-1, -1, -1])],
            classifier_config=ct.ClassifierConfig(["cat", "dog", "owl"]),
            convert_to=kind,
            **options,
        ).save(str(place))
    np.savez_compressed(FOLDER / "classifier.npz", x=pixels.numpy(), y=wanted)


def save_stateful() -> None:
    torch.manual_seed(0)
    module = Cache().eval()
    x = torch.randn(3, 1, 1, 4)
    traced = torch.jit.trace(module, x[0])
    buffers = dict(module.named_buffers())
    for held in (*buffers.values(), *traced.buffers()):
        held.zero_()
    types = {name: ct.TensorType(shape=held.shape, dtype=np.float16) for name, held in buffers.items()}
    program = ct.convert(
        traced,
        inputs=[ct.TensorType(name="x", shape=x.shape[1:])],
        outputs=[ct.TensorType(name="y")],
        states=[ct.StateType(wrapped_type=t, name=name) for name, t in types.items()],
        compute_precision=ct.precision.FLOAT32,
        minimum_deployment_target=ct.target.iOS18,
    )
    shutil.rmtree(STATEFUL / "cache.mlpackage", ignore_errors=True)
    program.save(str(STATEFUL / "cache.mlpackage"))
    for held in (*buffers.values(), *traced.buffers()):
        held.zero_()
    with torch.no_grad():
        wanted = np.stack([module(row).numpy() for row in x])
    np.savez_compressed(STATEFUL / "cache.npz", x=x.numpy(), y=wanted)


if __name__ == "__main__":
    main()
    save_classifier()
    save_stateful()

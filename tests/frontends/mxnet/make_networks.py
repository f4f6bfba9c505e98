"""Has MXNet save the networks of `networks/`, with inputs and its own outputs beside them.

Run it by a Python that has mxnet 1.9 and a numpy below 1.24: `python tests/frontends/mxnet/make_networks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

FOLDER = Path(__file__).parent / "networks"


def cnn() -> Any:
    """Convolutions, normalisation, pools of both conventions."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, strides=2, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.MaxPool2D(3, 2, ceil_mode=True), nn.Conv2D(8, 3, padding=1, groups=8, use_bias=False), nn.LeakyReLU(0.1))
    net.add(nn.AvgPool2D(2, 1, padding=1), nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dropout(0.5), nn.Dense(5))
    return net


class Decoder(gluon.HybridBlock):  # type: ignore[misc]
    """A transposed convolution, resampling, sums and joined channels."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2D(6, 3, strides=2, padding=1)
        self.up, self.slope = nn.Conv2DTranspose(4, 4, strides=2, padding=1), nn.PReLU()
        self.norm = nn.InstanceNorm()

    def hybrid_forward(self, f: Any, x: Any) -> Any:
        low = f.LeakyReLU(self.down(x), act_type="elu")
        near = f.UpSampling(low, scale=2, sample_type="nearest")
        made = f.concat(self.slope(self.up(low)), self.norm(near), dim=1)
        parts = f.split(made, num_outputs=2, axis=1)
        return f.broadcast_maximum(parts[0] * 2 - 1, f.clip(parts[1], -0.5, 0.5)).transpose((0, 2, 3, 1))


class Attention(gluon.HybridBlock):  # type: ignore[misc]
    """A layer of a transformer, of positions that are embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(20, 16), nn.LayerNorm()
        self.qkv, self.out = nn.Dense(48, flatten=False), nn.Dense(16, flatten=False)

    def hybrid_forward(self, f: Any, tokens: Any) -> Any:
        x = self.embed(tokens)
        made = self.qkv(self.norm(x)).reshape((0, 0, 3, 4, 4)).transpose((2, 0, 3, 1, 4)).reshape((3, -3, 0, 0))
        q, k, v = f.split(made, num_outputs=3, axis=0, squeeze_axis=True)
        scores = f.softmax(f.batch_dot(q, k, transpose_b=True) / 2, axis=-1)
        mixed = f.batch_dot(scores, v).reshape((-4, -1, 4, 0, 0)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))
        return x + f.tanh(self.out(mixed))


class Fused(gluon.HybridBlock):  # type: ignore[misc]
    """Recurrent layers whose weights are one vector, and whose first states the symbol makes of a batch of size zero."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.both = gluon.rnn.LSTM(5, num_layers=2, bidirectional=True, layout="NTC")
        self.one, self.last = gluon.rnn.GRU(4, layout="NTC"), nn.Dense(3, flatten=False)

    def hybrid_forward(self, f: Any, x: Any) -> Any:
        return self.last(self.one(self.both(self.words(x) * 9.0)))


class Cells(gluon.HybridBlock):  # type: ignore[misc]
    """Cells whose steps are written out, and whose first states the symbol makes of a batch of size zero."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(20, 6), nn.Dense(3)
        self.cells = [gluon.rnn.LSTMCell(5), gluon.rnn.GRUCell(4), gluon.rnn.RNNCell(4)]
        for cell in self.cells:
            self.register_child(cell)

    def hybrid_forward(self, f: Any, x: Any) -> Any:
        x = self.words(x) * 9.0
        for cell in self.cells:
            x, states = cell.unroll(7, x, layout="NTC", merge_outputs=True)
        return self.last(f.concat(f.mean(x, axis=1), states[0], dim=1))


def classic() -> tuple[Any, dict[str, Any]]:
    """A symbol with an output for training, as Module saves it."""
    x = mx.sym.Variable("data")
    x = mx.sym.FullyConnected(x, num_hidden=12, name="hidden")
    x = mx.sym.Activation(x, act_type="sigmoid", name="act")
    x = mx.sym.L2Normalization(mx.sym.FullyConnected(x, num_hidden=6, name="last"), name="unit") * 4
    symbol = mx.sym.SoftmaxOutput(x, name="softmax")
    shapes, _, _ = symbol.infer_shape(data=(3, 7))
    names = [n for n in symbol.list_arguments() if n not in ("data", "softmax_label")]
    known = dict(zip(symbol.list_arguments(), shapes))  # noqa: B905 (Python 3.9 runs this)
    return symbol, {n: mx.nd.random.normal(0, 0.5, known[n]) for n in names}


def _save(name: str, net: Any, x: Any) -> None:
    """Initialises a network, and saves it with an input and its output."""
    net.initialize(mx.init.Normal(0.3))
    net.hybridize()
    net(mx.nd.array(x))
    for key, p in net.collect_params().items():
        if "running" in key:
            p.set_data(mx.nd.random.uniform(0.5, 1.5, p.shape))
    wanted = net(mx.nd.array(x)).asnumpy()
    net.export(str(FOLDER / name), 0)
    np.savez_compressed(FOLDER / f"{name}.npz", x=x, y=wanted)


def main() -> None:
    mx.random.seed(3)
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 14, 12)).astype(np.float32)
    tokens = rng.integers(0, 20, (2, 7)).astype(np.float32)
    for name, net, x in (("cnn", cnn(), image), ("decoder", Decoder(), image), ("attention", Attention(), tokens)):
        _save(name, net, x)
    _save("fused", Fused(), tokens)
    _save("cells", Cells(), tokens)
    symbol, weights = classic()
    x = rng.standard_normal((3, 7)).astype(np.float32)
    bound = symbol.bind(mx.cpu(), {"data": mx.nd.array(x), "softmax_label": mx.nd.zeros(3), **weights})
    wanted = bound.forward(is_train=False)[0].asnumpy()
    symbol.save(str(FOLDER / "classic-symbol.json"))
    mx.nd.save(str(FOLDER / "classic-0000.params"), {f"arg:{k}": v for k, v in weights.items()})
    np.savez_compressed(FOLDER / "classic.npz", x=x, y=wanted)


if __name__ == "__main__":
    main()

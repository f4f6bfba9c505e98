"""Has MXNet quantise and save the networks of `quantized/`, with inputs and its own outputs beside them.

Run it by a Python that has mxnet 1.9 and a numpy below 1.24, on a machine with VNNI, whose results oneDNN's others are not:
`python tests/frontends/mxnet/make_quantized.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.contrib.quantization import quantize_net_v2
from mxnet.gluon import nn

FOLDER = Path(__file__).parent / "quantized"


class Sums(gluon.HybridBlock):  # type: ignore[misc]
    """Convolutions with what MXNet fuses into them: normalisations, sums with bytes of both signs, rectifiers, a clip."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.plain = nn.Conv2D(8, 3, padding=1), nn.Conv2D(8, 3, padding=1, use_bias=False)
        self.norm, self.point, self.last = nn.BatchNorm(), nn.Conv2D(8, 1), nn.Dense(4)
        self.groups, self.each = nn.Conv2D(6, 3, padding=1, groups=2), nn.Conv2D(6, 3, groups=6)

    def hybrid_forward(self, f: Any, x: Any) -> Any:
        a = f.relu(self.first(x))
        b = f.relu(self.norm(self.plain(a)) + a)
        c = self.point(a) + b
        d = f.LeakyReLU(self.norm(self.plain(c)) + c, act_type="leaky", slope=0.1)
        e = f.clip(self.groups(d), 0, 3.0)
        g = f.concat(e, f.Pooling(d, kernel=(3, 3), pool_type="max", stride=(1, 1), pad=(1, 1)), dim=1)
        mean = f.Pooling(g, global_pool=True, pool_type="avg", kernel=(1, 1))
        return f.concat(self.last(mean), f.Flatten(self.each(e)), dim=1)


class Rows(gluon.HybridBlock):  # type: ignore[misc]
    """Products with functions fused into them, attention, and sums and products of bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors, self.mixed = nn.Dense(24, flatten=False), nn.Dense(8, flatten=False)
        self.curved, self.cut, self.last = nn.GELU(), nn.Dense(8, flatten=False, activation="relu"), nn.Dense(5)

    def hybrid_forward(self, f: Any, x: Any) -> Any:
        vectors = self.vectors(x)
        weights = f.softmax(f.contrib.interleaved_matmul_selfatt_qk(vectors, heads=2))
        a = self.mixed(f.contrib.interleaved_matmul_selfatt_valatt(vectors, weights, heads=2))
        b = self.curved(self.mixed(a))
        return self.last(self.mixed(self.cut(b)) * a + f.abs(self.mixed(b)))


def cnn() -> Any:
    """Layers one after another."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, strides=2, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2, 1))
    net.add(nn.Conv2D(8, 3, padding=1), nn.AvgPool2D(2, 2), nn.Flatten(), nn.Dense(16, activation="relu"), nn.Dense(5))
    return net


def save(
    name: str, net: Any, x: Any, *, calibrated: bool, each_channel: bool = False, in_floats: tuple[str, ...] = ()
) -> None:
    """Initialises a network, quantises it but for some layers, and saves it with an input and its output."""
    net.initialize(mx.init.Normal(0.3))
    net.hybridize()
    net(mx.nd.array(x))
    for key, p in net.collect_params().items():
        if "running" in key:
            p.set_data(mx.nd.random.uniform(0.5, 1.5, p.shape))
        if "bias" in key:
            p.set_data(mx.nd.random.normal(0, 0.3, p.shape))
    made = quantize_net_v2(
        net,
        quantized_dtype="auto",
        quantize_granularity="channel-wise" if each_channel else "tensor-wise",
        calib_data=mx.io.NDArrayIter(data=x, batch_size=len(x)) if calibrated else None,
        calib_mode="naive" if calibrated else "none",
        data_shapes=[mx.io.DataDesc("data", x.shape)],
        exclude_layers=[*in_floats],
        ctx=mx.cpu(),
    )
    given = (x * 0.9).astype(np.float32)
    wanted = made(mx.nd.array(given)).asnumpy()
    made.export(str(FOLDER / name), 0)
    np.savez_compressed(FOLDER / f"{name}.npz", x=given, y=wanted)


def main() -> None:
    mx.random.seed(3)
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 10, 9)).astype(np.float32)
    rows = rng.standard_normal((5, 3, 8)).astype(np.float32)
    FOLDER.mkdir(exist_ok=True)
    save("anew", cnn(), image, calibrated=False, in_floats=("sg_mkldnn_conv_1", "sg_mkldnn_fully_connected_1"))
    save("sums", Sums(), image[:, :, :6, :5], calibrated=True)
    save("rows", Rows(), rows, calibrated=True, each_channel=True)


if __name__ == "__main__":
    main()

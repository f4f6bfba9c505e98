"""Networks of Caffe's kinds, small, as lists of layers; and their files, with weights that keep signals alive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.frontends.caffe.reference import Array, Layer, Reference, text_of, weights_of

PARAMETERS = {
    "Convolution": "convolution_param",
    "Deconvolution": "convolution_param",
    "BatchNorm": "batch_norm_param",
    "InnerProduct": "inner_product_param",
    "DepthwiseConvolution": "convolution_param",
    "ConvolutionDepthwise": "convolution_param",
    "ShuffleChannel": "shuffle_channel_param",
    "Normalize": "norm_param",
    "ContinuationIndicator": "continuation_indicator_param",
    "DummyData": "dummy_data_param",
    "Im2col": "convolution_param",
    "LSTM": "recurrent_param",
    "RNN": "recurrent_param",
}
SOURCES = ("ContinuationIndicator", "DummyData", "Parameter")


class Net:
    """Layers that are written one after another; each takes the result of the one before unless it names others."""

    def __init__(self, *shape: int) -> None:
        self.layers = [Layer("Input", "data", [], ["data"], {"input_param": {"shape": {"dim": list(shape)}}})]
        self.last = "data"

    def more(self, name: str, *shape: int) -> None:
        """Adds another input."""
        self.layers.append(Layer("Input", name, [], [name], {"input_param": {"shape": {"dim": list(shape)}}}))

    def add(self, kind: str, of: str = "", tops: str = "", in_place: bool = False, **parameters: Any) -> str:
        """Adds a layer, and returns the name of its (first) result."""
        name = f"{kind.lower()}{len(self.layers)}"
        bottoms = [] if kind in SOURCES else of.split() or [self.last]
        results = [self.last] if in_place else tops.split() or [name]
        own = PARAMETERS.get(kind, f"{kind.lower()}_param")
        self.layers.append(Layer(kind, name, bottoms, results, {own: parameters} if parameters else {}))
        self.last = results[0]
        return self.last

    def conv(self, n: int, k: int = 3, pad: int = 1, **more: Any) -> str:
        """Adds a convolution and its activation in place."""
        self.add("Convolution", num_output=n, kernel_size=k, pad=pad, **more)
        return self.add("ReLU", in_place=True)


def alexnet() -> Net:
    net = Net(1, 3, 35, 35)
    net.conv(8, 7, 0, stride=2)
    net.add("LRN", local_size=5, alpha=0.5, beta=0.75)
    net.add("Pooling", pool="MAX", kernel_size=3, stride=2)
    net.conv(16, 5, 2, group=2)
    net.add("LRN", local_size=3, alpha=0.5, norm_region="WITHIN_CHANNEL")
    net.add("Pooling", pool="MAX", kernel_size=3, stride=2)
    net.conv(16, group=2)
    net.add("InnerProduct", num_output=24)
    net.add("ReLU", in_place=True)
    net.add("Dropout", in_place=True, dropout_ratio=0.5)
    net.add("InnerProduct", num_output=10, transpose=True)
    net.add("Softmax")
    return net


def squeezenet() -> Net:
    net = Net(2, 3, 33, 33)
    net.conv(8, 3, 0, stride=2)
    net.add("Pooling", pool="MAX", kernel_size=3, stride=2)
    for n in (4, 6):
        squeezed = net.conv(n, 1, 0)
        parts = []
        for k in (1, 3):
            net.last = squeezed
            parts.append(net.conv(8, k, k // 2))
        net.add("Concat", " ".join(parts))
    net.add("Pooling", pool="AVE", kernel_size=3, stride=2, pad=1)
    net.conv(10, 1, 0)
    net.add("Pooling", pool="AVE", global_pooling=True)
    net.add("Flatten")
    net.add("Power", scale=4.0)
    net.add("Softmax")
    return net


def resnet() -> Net:
    net = Net(1, 3, 32, 32)

    def block(n: int, k: int, stride: int, relu: bool) -> str:
        net.add("Convolution", num_output=n, kernel_size=k, pad=k // 2, stride=stride, bias_term=False)
        net.add("BatchNorm", in_place=True, use_global_stats=True, eps=1e-5)
        net.add("Scale", in_place=True, bias_term=True)
        return net.add("ReLU", in_place=True) if relu else net.last

    x = block(8, 7, 2, True)
    for n, stride in ((8, 1), (12, 2)):
        straight = block(n, 1, stride, False)
        net.last = x
        block(n, 3, stride, True)
        y = block(n, 3, 1, False)
        net.add("Eltwise", f"{straight} {y}", operation="SUM", coeff=[1.0, 0.5])
        x = net.add("ReLU", in_place=True, negative_slope=0.1)
    squeezed = net.add("Pooling", pool="AVE", global_pooling=True)
    net.add("InnerProduct", num_output=12)
    gate = net.add("Sigmoid")
    net.add("Scale", f"{x} {gate}", axis=0)
    net.add("Pooling", pool="MAX", kernel_h=3, kernel_w=2, stride_h=2, stride_w=1)
    net.add("InnerProduct", num_output=8)
    assert squeezed
    return net


def segmenter() -> Net:
    net = Net(1, 3, 24, 20)
    a = net.conv(8)
    net.add("Pooling", pool="MAX", kernel_size=2, stride=2)
    b = net.conv(12, 3, 2, dilation=2)
    net.add("PReLU")
    net.add("Deconvolution", num_output=8, kernel_size=4, stride=2, pad=0, bias_term=False)
    cropped = net.add("Crop", f"{net.last} {a}", axis=2, offset=[1, 1])
    net.add("Eltwise", f"{cropped} {a}", operation="MAX")
    net.add("Deconvolution", num_output=6, kernel_size=[3, 2], stride=[1, 2], group=2)
    net.add("Convolution", num_output=4, kernel_size=1)
    net.add("Softmax")
    net.last = b
    net.add("Normalize", across_spatial=False, channel_shared=False)
    net.add("Permute", order=[0, 2, 3, 1])
    net.add("Reshape", shape={"dim": [0, -1, 3]})
    return net


def others() -> Net:
    net = Net(1, 6, 10, 10)
    net.add("MVN")
    net.add("ELU", alpha=0.5)
    net.add("ShuffleChannel", group=3)
    net.add("Slice", tops="s0 s1 s2", axis=1, slice_point=[1, 3])
    net.add("Tile", "s0", tiles=2)
    net.add("Bias", tops="tiled")
    net.add("Eltwise", "tiled s1", tops="prod", operation="PROD")
    net.add("Split", "prod", tops="p0 p1")
    net.add("TanH", "p0", tops="t")
    net.add("AbsVal", "p1", tops="a")
    net.add("Power", "a", tops="pow", power=1.5, scale=2.0, shift=0.5)
    net.add("Log", "pow", tops="log", base=2.0, shift=1.0)
    net.add("Exp", "t", tops="exp", base=2.0, scale=0.5)
    net.add("BNLL", "s2", tops="bnll")
    net.add("Concat", "log exp bnll", tops="all")
    net.add("ReLU6", "all", tops="six")
    net.add("Reduction", "six", tops="sum", axis=2, operation="ASUM", coeff=0.01)
    net.add("Slice", "all", tops="half other", axis=2)
    for sink in ("Silence", "HDF5Output"):
        net.add(sink, "other", tops=" ")
        net.layers[-1] = net.layers[-1]._replace(tops=[])
    return net


def forks() -> Net:
    """Layers that forks of Caffe have."""
    net = Net(1, 4, 8, 8)
    net.add("DepthwiseConvolution", num_output=4, kernel_size=3, pad=1)
    net.add("BN", bn_mode="INFERENCE")
    net.add("ConvolutionDepthwise", num_output=8, kernel_size=3, stride=2, bias_term=False)
    net.add("BN", eps=0.01)
    net.add("BatchNorm", use_global_stats=False, eps=0.001)
    net.add("Clip", min=-0.5, max=0.75)
    return net


NETWORKS = {f.__name__: f().layers for f in (alexnet, squeezenet, resnet, segmenter, others, forks)}


def image_of(layers: list[Layer]) -> Array:
    """Returns images for a network's input."""
    shape = layers[0].fields["input_param"]["shape"]["dim"]
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def write(layers: list[Layer], folder: Path, x: Array, old: bool = False) -> tuple[Path, dict[str, Array]]:
    """Writes the network's two files to *folder*; returns the path of its text, and its results for *x*."""
    reference = Reference(0)
    results = reference.run(layers, {"data": x.astype(np.float64)})
    path = folder / "net.prototxt"
    path.write_text(f"# a network\n{text_of('small', layers)}")
    path.with_suffix(".caffemodel").write_bytes(weights_of("small", reference.blobs, old))
    return path, results

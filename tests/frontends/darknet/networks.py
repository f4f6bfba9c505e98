"""Networks of Darknet's kinds, small, as lists of sections; and their files, with weights that keep signals alive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.frontends.darknet.reference import Array, Options, Reference

Sections = list[tuple[str, Options]]


def section(kind: str, **options: object) -> tuple[str, Options]:
    return kind, {name.removesuffix("_"): str(value) for name, value in options.items()}


def conv(
    filters: int, size: int = 3, stride: int = 1, activation: str = "leaky", bn: int = 1, **more: object
) -> tuple[str, Options]:
    return section(
        "convolutional",
        batch_normalize=bn,
        filters=filters,
        size=size,
        stride=stride,
        pad=1,
        activation=activation,
        **more,
    )


def net(width: int, height: int = 0, channels: int = 3) -> tuple[str, Options]:
    return section(
        "net", batch=64, subdivisions=16, width=width, height=height or width, channels=channels, momentum=0.9
    )


def maxpool(size: int = 2, stride: int = 2, **more: object) -> tuple[str, Options]:
    return section("maxpool", size=size, stride=stride, **more)


def route(layers: str, **more: object) -> tuple[str, Options]:
    return section("route", layers=layers, **more)


def yolo(mask: str, **more: object) -> tuple[str, Options]:
    anchors = "10,14, 23,27, 37,58, 81,82, 135,169, 344,319"
    return section("yolo", mask=mask, anchors=anchors, classes=4, num=6, jitter=0.3, ignore_thresh=0.7, **more)


def _head(filters: int = 27, activation: str = "linear") -> tuple[str, Options]:
    return conv(filters, 1, activation=activation, bn=0)


YOLOV3_TINY: Sections = [
    net(32),
    conv(8),
    maxpool(),
    conv(12),
    maxpool(),
    conv(16),
    maxpool(),
    conv(16),
    maxpool(2, 1),
    conv(24),
    conv(12, 1),
    conv(16),
    _head(),
    yolo("3,4,5"),
    route("-4"),
    conv(8, 1),
    section("upsample", stride=2),
    route("-1, 4"),
    conv(16),
    _head(),
    yolo("0,1,2"),
]

YOLOV4_TINY: Sections = [
    net(32, 16),
    conv(8, stride=2, activation="mish"),
    conv(16, stride=2),
    conv(16),
    route("-1", groups=2, group_id=1),
    conv(8),
    conv(8),
    route("-1,-2"),
    conv(16, 1, activation="mish"),
    route("-6,-1"),
    maxpool(),
    conv(16, 1),
    maxpool(5, 1),
    route("-2"),
    maxpool(9, 1),
    route("-1,-3,-4"),
    conv(16, 1, activation="swish"),
    _head(),
    yolo("3,4,5", scale_x_y=1.05),
    route("-3"),
    conv(8, 1),
    section("upsample", stride=2),
    conv(27, 1, activation="logistic", bn=0),
    yolo("0,1,2", scale_x_y=2.0, new_coords=1),
]

RESNET: Sections = [
    net(32),
    conv(8, 7, 2),
    maxpool(),
    conv(8, 1),
    conv(8, 3),
    conv(16, 1, activation="linear"),
    section("shortcut", from_=-4, activation="leaky"),
    conv(16, groups=4),
    conv(16, 1, activation="linear"),
    section("shortcut", from_=-3, activation="relu"),
    conv(24, stride=2, activation="linear"),
    section("shortcut", from_=-2, activation="leaky"),
    section("avgpool"),
    conv(10, 1, activation="linear", bn=0),
    section("softmax", groups=1),
    section("cost", type="sse"),
]

YOLOV2: Sections = [
    net(32),
    conv(8),
    maxpool(),
    conv(16),
    maxpool(),
    conv(16),
    maxpool(),
    conv(16),
    maxpool(),
    conv(24),
    route("-3"),
    conv(8, 1),
    section("reorg", stride=2),
    route("-1,-4"),
    conv(24),
    conv(27, 1, activation="linear", bn=0),
    section("region", anchors="1.3,1.7, 3.2,4.0, 5.1,8.1", classes=4, coords=4, num=3, softmax=1, bias_match=1),
]

YOLOV1: Sections = [
    net(40),
    section("crop", crop_width=32, crop_height=32),
    conv(8, stride=2),
    maxpool(),
    conv(12),
    conv(8, dilation=2),
    section("connected", output=32, activation="leaky", batch_normalize=1),
    section("dropout", probability=0.5),
    section("connected", output=20, activation="linear"),
    section("detection", classes=2, coords=4, side=2, num=1),
]

SQUEEZE_AND_EXCITE: Sections = [
    net(12),
    conv(12, activation="swish"),
    section("avgpool"),
    conv(4, 1, activation="relu6"),
    conv(12, 1, activation="logistic"),
    section("scale_channels", from_=-4),
    conv(12, 1, activation="logistic", bn=0),
    section("sam", from_=-2),
    section("deconvolutional", filters=6, size=4, stride=2, padding=1, activation="elu", batch_normalize=1),
    section("local_avgpool", size=3, stride=2),
    section("reorg3d", stride=2),
    section("batchnorm"),
    section("lrn", size=5, alpha=0.1, beta=0.75, kappa=1),
    section("l2norm"),
    section("connected", output=12, activation="tanh"),
    section("softmax", groups=3, temperature=0.5),
]

ALIASES: Sections = [
    net(16, channels=4),
    ("conv", conv(8)[1]),
    ("max", maxpool()[1]),
    ("normalization", {"size": "3", "alpha": "0.1", "beta": "0.75", "kappa": "1"}),
    section("empty"),
    section("conv", filters=8, size=1, activation="linear"),
    section("residual", from_=-3, activation="leaky"),
    section("silence"),
    section("reorg_old", stride=2),
    section("deconv", filters=6, size=2, stride=2, activation="relu"),
    section("local_avg", size=3, stride=1),
    section("activation", activation="elu"),
    section("avg"),
    section("conn", output=12, activation="linear"),
    section("logxent"),
    section("soft", groups=3),
]
"""The other names that layers have."""

NETWORKS = {
    "yolov3_tiny": YOLOV3_TINY,
    "yolov4_tiny": YOLOV4_TINY,
    "resnet": RESNET,
    "yolov2": YOLOV2,
    "yolov1": YOLOV1,
    "squeeze_and_excite": SQUEEZE_AND_EXCITE,
    "aliases": ALIASES,
}


def text_of(sections: Sections) -> str:
    """Returns the network's text."""
    return "\n".join(
        f"[{kind}]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()) for kind, options in sections
    )


def image_of(sections: Sections, seed: int = 0, batch: int = 1) -> Array:
    """Returns images for the network's input."""
    o = sections[0][1]
    return np.random.default_rng(seed).random(
        (batch, int(o["channels"]), int(o["height"]), int(o["width"])), np.float32
    )


def write(sections: Sections, folder: Path, x: Array) -> tuple[Path, list[Array]]:
    """Writes the network's two files to *folder*; returns the path of its text, and the results of its layers for *x*."""
    path = folder / "net.cfg"
    path.write_text(f"# a network\n\n{text_of(sections)}")
    reference = Reference(0)
    results = reference.run(sections, x.astype(np.float64))
    reference.write(folder / "net.weights")
    return path, results

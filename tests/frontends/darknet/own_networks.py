"""Networks that the original Darknet trains, saves and runs: its detectors, classifiers and recurrent layers."""

from __future__ import annotations

from tests.frontends.darknet.networks import Sections, conv, maxpool, route, section, yolo

MAPS = ("yolo", "region")
RECURRENT = ("rnn", "gru", "lstm", "crnn")
UNTRAINED = ("rnn", "lstm", "crnn")
"""Darknet writes beyond its arrays where it trains them on a CPU."""

STEPS = 150


def net(width: int, height: int = 0, channels: int = 3) -> tuple[str, dict[str, str]]:
    return section(
        "net", batch=4, subdivisions=1, width=width, height=height or width, channels=channels, learning_rate=0.0005
    )


def steps_of(sections: Sections) -> tuple[int, int]:
    """Returns for how many steps a network is trained, and how many numbers its truth has: those of its result, or of boxes."""
    kind, _ = sections[-1]
    last = {"yolo": 90 * 5, "region": 30 * 5, "detection": 4 * (1 + 2 + 4)}
    sizes = [int(o[name]) for _, o in sections for name in ("filters", "output", "output_filters") if name in o]
    untrained = any(name in UNTRAINED for name, _ in sections)
    return 0 if untrained else STEPS, last.get(kind, sizes[-1])


SPP: Sections = [
    net(32),
    conv(6),
    conv(8, stride=2),
    conv(4, 1),
    conv(8),
    section("shortcut", from_=-3, activation="linear"),
    conv(10, stride=2),
    conv(8, 1),
    maxpool(3, 1),
    route("-2"),
    maxpool(5, 1),
    route("-1,-3,-4"),
    conv(12, 1),
    conv(27, 1, activation="linear", bn=0),
    yolo("3,4,5"),
    route("-3"),
    conv(6, 1),
    section("upsample", stride=2),
    route("-1,4"),
    conv(8),
    conv(27, 1, activation="linear", bn=0),
    yolo("0,1,2"),
]

YOLOV2: Sections = [
    net(32, 48),
    conv(6),
    maxpool(),
    conv(8),
    maxpool(),
    conv(12),
    maxpool(2, 1),
    conv(8, 1),
    maxpool(),
    conv(12),
    route("-3"),
    conv(4, 1),
    section("reorg", stride=2),
    route("-1,-4"),
    conv(12),
    conv(27, 1, activation="linear", bn=0),
    section("region", anchors="1.3,1.7, 3.2,4.0, 5.1,8.1", classes=4, coords=4, num=3, softmax=1, bias_match=1),
]

RESNEXT: Sections = [
    net(24),
    conv(8, 7, 2),
    maxpool(),
    conv(8, 1),
    conv(8, 3, groups=4),
    conv(16, 1, activation="linear"),
    section("shortcut", from_=-4, activation="leaky", alpha=1, beta=1),
    conv(8, 3, 2, activation="elu", groups=2),
    conv(16, 1, activation="linear"),
    section("shortcut", from_=-3, activation="relu"),
    section("avgpool"),
    conv(10, 1, activation="linear", bn=0),
    section("softmax", groups=2),
]

YOLOV1: Sections = [
    net(20),
    section("crop", crop_width=16, crop_height=16),
    conv(6, stride=2),
    section("normalization", size=5, alpha=0.02, beta=0.75, kappa=1),
    maxpool(),
    section("local", filters=5, size=3, stride=1, pad=1, activation="leaky"),
    section("dropout", probability=0.5),
    section("connected", output=24, activation="relu", batch_normalize=1),
    section("connected", output=28, activation="linear"),
    section("detection", classes=2, coords=4, side=2, num=1, rescore=1),
]

DECODER: Sections = [
    net(16),
    conv(8, stride=2, activation="selu"),
    conv(8, activation="linear"),
    section("shortcut", from_=-2, activation="tanh", alpha=0.5, beta=2),
    section("reorg", stride=2, reverse=0),
    section("reorg", stride=2, reverse=1),
    section("l2norm"),
    conv(4, 3, activation="ramp", bn=0),
    section("activation", activation="hardtan"),
    section("avgpool"),
    section("connected", output=9, activation="loggy"),
    section("softmax", temperature=0.2),
]

VECTORS = section("net", batch=1, inputs=14, learning_rate=0.001)
NETWORKS: dict[str, Sections] = {
    "spp": SPP,
    "yolov2": YOLOV2,
    "resnext": RESNEXT,
    "yolov1": YOLOV1,
    "decoder": DECODER,
    "gru": [
        VECTORS,
        section("gru", output=12),
        section("gru", output=10, tanh=1),
        section("connected", output=14, activation="linear"),
        section("logistic"),
    ],
    "lstm": [
        VECTORS,
        section("lstm", output=12),
        section("rnn", output=10, activation="leaky", shortcut=1),
        section("connected", output=14, activation="linear"),
    ],
    "crnn": [
        section("net", batch=1, width=7, height=7, channels=3),
        conv(4, 5, bn=0),
        section("crnn", hidden_filters=5, output_filters=3, activation="tanh"),
        section("connected", output=11, activation="linear"),
    ],
}

"""Makes small models of TensorFlow's operators on colours and sizes of images, factors of matrices, and special functions.

    python -m tests.frontends.tensorflow.make_picture_cases

Needs TensorFlow 2.21. Writes `cases/pictures.npz.xz`, as `make_cases` does; `open` has an image of any size.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.frontends.tensorflow.make_cases import CASES, R, case, f, op, pack, u

CASES.clear()
FOLDER = Path(__file__).parent / "cases"
IMAGE = u(2, 7, 9, 3)
IMAGE[0, 0, :2] = [[0.5, 0.5, 0.5], [0, 0, 0]]
KERNEL = f(3, 3, 3, 4)


def strided(x: Any) -> Any:
    """Convolutions and pools with strides over an image of any size."""
    y = tf.nn.conv2d(x, KERNEL, 2, "SAME")
    pools = tf.nn.max_pool2d(y, 3, 2, "SAME") + tf.nn.avg_pool2d(y, 3, 2, "SAME")
    deep = tf.nn.depthwise_conv2d(y, KERNEL[:, :2].repeat(2, 2)[:, :, :4, :2], [1, 2, 2, 1], "SAME")
    return tf.nn.conv2d(tf.concat([pools, deep], -1), KERNEL.repeat(4, 2), 3, "SAME"), tf.roll(x, [2, -1], [1, 2])


def spd(*shape: int) -> Any:
    a = f(*shape)
    return (a @ a.swapaxes(-1, -2) + 3 * np.eye(shape[-1])).astype(np.float32)


case("RGBToHSV", tf.image.rgb_to_hsv, IMAGE)
case("HSVToRGB", tf.image.hsv_to_rgb, IMAGE)
case("AdjustSaturation", lambda x: tf.image.adjust_saturation(x, 1.7), IMAGE)
case("AdjustHue", lambda x: tf.image.adjust_hue(x, -0.3), IMAGE)
case("AdjustContrastv2", lambda x: tf.image.adjust_contrast(x, 1.5), IMAGE)
for _size in ((4, 20), (7, 3), (13, 9)):
    case(f"ResizeArea.{_size}", lambda x, s=_size: R.ResizeArea(images=x, size=s), IMAGE)
for _kind in ("lanczos3", "lanczos5", "bilinear", "bicubic"):
    for _smooth in (False, True):
        case(
            f"ScaleAndTranslate.{_kind}.{_smooth}",
            lambda x, k=_kind, s=_smooth: tf.image.resize(x, (4, 13), k, antialias=s),
            IMAGE,
        )
case("open", strided, IMAGE)
case("open.even", strided, u(1, 8, 12, 3))
case("LogMatrixDeterminant", lambda x: tuple(R.LogMatrixDeterminant(input=x)), f(2, 4, 4))
for _full in (False, True):
    case(f"Qr.{_full}", lambda x, k=_full: tf.matmul(*R.Qr(input=x, full_matrices=k)), f(2, 5, 3))
case("SelfAdjointEigV2", lambda x: R.SelfAdjointEigV2(input=x, compute_v=True)[0], spd(2, 4, 4))
case("SelfAdjointEigV2.vectors", lambda x: tf.abs(R.SelfAdjointEigV2(input=x, compute_v=True)[1]), spd(2, 4, 4))
case("Svd.values", lambda x: R.Svd(input=x, compute_uv=False, full_matrices=False)[0], f(2, 3, 5))
case("Svd", lambda x: tf.abs(R.Svd(input=x, compute_uv=True, full_matrices=False)[2]), f(2, 5, 3))
for _name in ("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1"):
    case(_name, op(_name), f(3, 4) * 4)
for _name in ("BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1"):
    case(_name, op(_name), u(3, 4) * 5)
for _name in ("Igamma", "Igammac"):
    case(_name, op(_name), u(3, 4) * 4, u(3, 4) * 4)
case("Zeta", op("Zeta"), u(3, 4) * 4 + 1.5, u(3, 4) * 4)
case("NextAfter", op("NextAfter"), f(3, 4), f(3, 4))


case(
    "BatchMatMulV3_of_bytes",
    lambda x, y: R.BatchMatMulV3(x=x, y=y, Tout=tf.int32, adj_y=True),
    (f(2, 3, 40) * 90).astype(np.int8),
    (f(2, 4, 40) * 90).astype(np.int8),
)


def main() -> None:
    graphs: dict[str, Any] = {}
    for name, (of, inputs) in CASES.items():
        is_open = name.startswith("open")
        shapes = [(None, None, None, i.shape[-1]) if is_open else i.shape for i in inputs]
        specs = [tf.TensorSpec(s, i.dtype) for s, i in zip(shapes, inputs, strict=True)]
        made = tf.function(of).get_concrete_function(*specs)
        outputs = [v.numpy() for v in tf.nest.flatten(made(*map(tf.constant, inputs)))]
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v for k, v in enumerate(outputs)}
    pack(FOLDER / "pictures.npz.xz", graphs)


if __name__ == "__main__":
    main()

"""Has OpenCV run the tests' networks of Darknet and Caffe that it can load, and stores results in `opencv.npz`.

Of Darknet's it stores what its detectors are given: its own decode boxes. Fusion is off, so that layers are those of the file.
Run it by a Python that has opencv-python-headless 4.14 (5.0 reads neither format): `python -m tests.frontends.make_opencv`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from tests.frontends.caffe import networks as caffe
from tests.frontends.darknet import networks as darknet

PLACE = Path(__file__).parent / "opencv.npz"
OF_DARKNET = {
    "yolov2": ("conv_14",),
    "yolov3_tiny": ("conv_11", "conv_18"),
    "yolov4_tiny": ("conv_16", "logistic_22"),
}
"""The layers before the detectors; OpenCV counts the activation of a convolution as the next one's."""
OF_CAFFE = ("squeezenet", "resnet", "segmenter")


def run(net: Any, x: Any, names: tuple[str, ...]) -> list[Any]:
    net.enableFusion(False)
    net.enableWinograd(False)
    net.setInput(x)
    return [y.copy() for y in net.forward(names)]


def main() -> None:
    made: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, layers in OF_DARKNET.items():
            sections = darknet.NETWORKS[name]
            x = darknet.image_of(sections)
            path, _ = darknet.write(sections, Path(folder), x)
            net = cv2.dnn.readNetFromDarknet(str(path), str(path.with_suffix(".weights")))
            made.update({f"darknet/{name}/{k}": y for k, y in enumerate(run(net, x, layers))})
        for name in OF_CAFFE:
            x = caffe.image_of(caffe.NETWORKS[name])
            path, results = caffe.write(caffe.NETWORKS[name], Path(folder), x)
            net = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
            made.update({f"caffe/{name}/{k}": y for k, y in enumerate(run(net, x, tuple(results)))})
    np.savez_compressed(PLACE, **made)


if __name__ == "__main__":
    main()

"""Makes models of TensorFlow Lite that end with the detectors' custom operator, with inputs and what its interpreter returns.

    python tests/frontends/tflite/make_detection.py FOLDER

Needs TensorFlow 2.21; the tests do not. A case is `NAME.npz` in the folder: the file `model`, its inputs by name, and the results
`output_0` ... in its order, of which those behind the last box are not written by the interpreter. Seeds are fixed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

BOXES, CLASSES = 20, 3
CASES: dict[str, dict[str, Any]] = {
    "fast": {"max_detections": 6, "max_classes_per_detection": 1, "use_regular_nms": False},
    "fast_of_two_classes": {"max_detections": 30, "max_classes_per_detection": 2, "use_regular_nms": False},
    "regular": {"max_detections": 6, "max_classes_per_detection": 1, "use_regular_nms": True},
    "regular_of_few": {
        "max_detections": 25,
        "max_classes_per_detection": 2,
        "use_regular_nms": True,
    },
}
COMMON = {
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
    "num_classes": CLASSES,
}


def written(settings: dict[str, Any]) -> str:
    """Returns the custom operator's name and settings as the converter is told them."""
    kinds = {bool: "b", int: "i", float: "f"}
    parts = [
        f"attr {{ key: '{k}' value {{ {kinds[type(v)]}: {str(v).lower()} }} }}" for k, v in (COMMON | settings).items()
    ]
    return f"name: 'TFLite_Detection_PostProcess' {' '.join(parts)}"


def model_of(settings: dict[str, Any], anchors: Any) -> bytes:
    count = settings["max_detections"] * settings["max_classes_per_detection"]

    @tf.function(experimental_implements=written(settings))  # type: ignore[untyped-decorator]
    def post(boxes: Any, scores: Any, anchors: Any) -> Any:
        return tf.zeros((1, count, 4)), tf.ones((1, count)), tf.fill((1, count), 2.0), tf.fill((1,), 3.0)

    class Head(tf.Module):  # type: ignore[misc]
        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec((1, BOXES, 4)), tf.TensorSpec((1, BOXES, CLASSES + 1))]
        )
        def call(self, boxes: Any, scores: Any) -> Any:
            names = ("boxes", "classes", "scores", "count")
            return dict(zip(names, post(boxes, tf.sigmoid(scores), tf.constant(anchors)), strict=True))

    head = Head()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(head, folder, signatures=head.call)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.allow_custom_ops = True
        return bytes(converter.convert())


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for seed, (name, settings) in enumerate(CASES.items()):
        rng = np.random.default_rng(seed)
        anchors = np.concatenate([rng.uniform(0.2, 0.8, (BOXES, 2)), rng.uniform(0.2, 0.5, (BOXES, 2))], 1)
        model = model_of(settings, anchors.astype(np.float32))
        runner = tf.lite.Interpreter(model_content=model).get_signature_runner()
        given = {
            "boxes": rng.normal(size=(1, BOXES, 4)).astype(np.float32),
            "scores": rng.normal(size=(1, BOXES, CLASSES + 1)).astype(np.float32),
        }
        made = runner(**given)
        print(name, {k: v.shape for k, v in made.items()}, made["count"], np.abs(made["boxes"]).max())
        held: dict[str, Any] = {"model": np.frombuffer(model, np.uint8)}
        held |= {f"given_{k}": v for k, v in given.items()} | {f"made_{k}": v for k, v in made.items()}
        np.savez_compressed(folder / f"{name}.npz", **held)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Makes graphs of TensorFlow that choose boxes of several classes, with inputs and what TensorFlow computes.

    python tests/frontends/tensorflow/make_boxes_of_classes.py tests/frontends/tensorflow/cases/boxes_of_classes.npz

Needs TensorFlow 2.21; the tests do not. Seeds are fixed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

CASES: dict[str, dict[str, Any]] = {
    "shared": {"boxes": 1, "total": 9, "each": 4, "pad_per_class": False, "clip_boxes": True},
    "apart": {"boxes": 3, "total": 40, "each": 5, "pad_per_class": True, "clip_boxes": False},
}
"""By name, how many boxes each place has: one for all of 3 classes, or one of each class."""


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    held: dict[str, Any] = {}
    for name, settings in CASES.items():
        count, total, each = (settings.pop(n) for n in ("boxes", "total", "each"))
        corner, size = rng.uniform(-0.1, 0.8, (2, 12, count, 2)), rng.uniform(0.1, 0.5, (2, 12, count, 2))
        boxes = np.concatenate([corner, corner + size], -1).astype(np.float32)
        scores = rng.uniform(0, 1, (2, 12, 3)).astype(np.float32)

        def chosen(boxes: Any, scores: Any, total: int = total, each: int = each, settings: Any = settings) -> Any:
            limits = {"iou_threshold": 0.3, "score_threshold": 0.4, "max_output_size_per_class": each}
            return tf.raw_ops.CombinedNonMaxSuppression(
                boxes=boxes, scores=scores, max_total_size=total, **limits, **settings
            )

        first = None if settings["clip_boxes"] else 2
        shapes = [(first, *boxes.shape[1:]), (first, *scores.shape[1:])]
        made = tf.function(chosen).get_concrete_function(*map(tf.TensorSpec, shapes))
        held[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        held |= {f"{name}.input{k}": v for k, v in enumerate((boxes, scores))}
        held |= {f"{name}.output{k}": v.numpy() for k, v in enumerate(made(tf.constant(boxes), tf.constant(scores)))}
    np.savez_compressed(path, **held)


if __name__ == "__main__":
    main(sys.argv[1])

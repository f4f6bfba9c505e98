"""Makes a small model of each of TensorFlow's operators that `make_cases` leaves out, as that does.

    python -m tests.frontends.tensorflow.make_named_cases

Needs TensorFlow 2.21. Writes `cases/named.npz.xz`, and `cases/named_lite.npz.xz` of those that TensorFlow Lite's converter takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.frontends.tensorflow.make_cases import CASES, R, case, f, lite_of, n, op, pack, u

CASES.clear()
FOLDER = Path(__file__).parent / "cases"

case("AccumulateNV2", lambda x, y: R.AccumulateNV2(inputs=[x, y], shape=[3, 4]), f(3, 4), f(3, 4))
case("Inv", op("Inv"), u(3, 4))
case("Mod", op("Mod"), n(3, 4), np.array([[3, -4, 5, -2]], np.int32))
case("Div", op("Div"), f(3, 4), u(3, 4))
case("Div.integers", op("Div"), n(3, 4), np.array([[3, -4, 5, -2]], np.int32))
for _name in ("MulNoNan", "Xdivy", "Xlog1py"):
    case(_name, op(_name), np.array([[0, 1, 2, 0]], np.float32), np.array([[1, 0.5, 2, 0]], np.float32))
case("Snapshot", op("Snapshot"), f(3, 4))
case("PreventGradient", op("PreventGradient"), f(3, 4))
case("DeepCopy", op("DeepCopy"), f(3, 4))
case(
    "PlaceholderWithDefault", lambda x: x + R.PlaceholderWithDefault(input=tf.constant([1.5, 2, 3]), shape=[3]), f(2, 3)
)
case("ShapeN", lambda x, y: tuple(R.ShapeN(input=[x, y])), f(3, 4), f(2))
case("LinSpace", lambda x: x + R.LinSpace(start=1.0, stop=3.0, num=5), f(5))
case("Empty", lambda x: x + R.Empty(shape=[3], dtype=tf.float32, init=True), f(3))
case("Diag", op("Diag"), f(3))
case("Diag.more", op("Diag"), f(2, 3))
case("DiagPart", op("DiagPart"), f(3, 3))
case("DiagPart.more", op("DiagPart"), f(2, 3, 2, 3))
case("MatrixDiag", op("MatrixDiag"), f(2, 3))
case("MatrixDiagPart", op("MatrixDiagPart"), f(2, 3, 3))
case("MatrixSetDiag", op("MatrixSetDiag"), f(2, 3, 3), f(2, 3))
case("MatrixDiagV2", op("MatrixDiagV2", k=0, num_rows=-1, num_cols=-1, padding_value=0.0), f(2, 3))
case("MatrixDiagPartV2", op("MatrixDiagPartV2", k=0, padding_value=0.0), f(2, 3, 3))
case("MatrixSetDiagV2", op("MatrixSetDiagV2", k=0), f(2, 3, 3), f(2, 3))
case("BatchMatMul", op("BatchMatMul", adj_x=True), f(2, 4, 3), f(2, 4, 5))
case("BatchMatMulV3", op("BatchMatMulV3", Tout=tf.float32, adj_y=True), f(2, 3, 4), f(5, 4))
case("ConjugateTranspose", lambda x: R.ConjugateTranspose(x=x, perm=[2, 0, 1]), f(2, 3, 4))
case("Concat", lambda x, y: R.Concat(concat_dim=1, values=[x, y]), f(2, 3), f(2, 4))
case("Gather", op("Gather"), f(4, 3), np.array([[2, 0], [1, 3]], np.int32))
case("BiasAddV1", op("BiasAddV1"), f(2, 3, 4), f(4))
case("SpaceToBatch", lambda x: R.SpaceToBatch(input=x, paddings=[[0, 1], [1, 0]], block_size=2), f(1, 3, 5, 2))
case("BatchToSpace", lambda x: R.BatchToSpace(input=x, crops=[[0, 1], [1, 0]], block_size=2), f(4, 2, 3, 2))
case("Bincount", lambda x: R.Bincount(arr=x, size=6, weights=tf.constant([], tf.float32)), n(7, low=0, high=6))
case(
    "DenseBincount",
    lambda x: R.DenseBincount(input=x, size=6, weights=tf.constant([], tf.float32)),
    n(7, low=0, high=6),
)
CHANNELS = [u(3), f(3), f(3), u(3)]
for _name in ("FusedBatchNorm", "FusedBatchNormV2"):
    case(
        _name,
        lambda x, *c, o=_name: getattr(R, o)(
            x=x, scale=c[0], offset=c[1], mean=c[2], variance=c[3], is_training=False, epsilon=0.01
        )[0],
        f(2, 3, 4, 3),
        *CHANNELS,
    )
BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.05, 1, 3]], np.float32)
case("NonMaxSuppression", lambda s: R.NonMaxSuppression(boxes=BOXES, scores=s, max_output_size=3), u(4))
case(
    "NonMaxSuppressionV2",
    lambda s: R.NonMaxSuppressionV2(boxes=BOXES, scores=s, max_output_size=3, iou_threshold=0.5),
    u(4),
)
case("RELU_0_TO_1", lambda x: tf.minimum(tf.maximum(x, 0.0), 1.0), f(3, 4))
case("RELU_N1_TO_1", lambda x: tf.minimum(tf.maximum(x, -1.0), 1.0), f(3, 4))
case("PRELU", lambda x: tf.nn.relu(x) - tf.constant([0.1, 0.2, 0.3, 0.4]) * tf.nn.relu(-x), f(1, 2, 3, 4))
case("SQUEEZE", lambda x: tf.squeeze(x, [0, 2]), f(1, 3, 1))
case("EXPAND_DIMS", lambda x: tf.expand_dims(x, 1), f(3, 4))
case("RANGE", lambda k: tf.range(0, k, 2), np.array(9, np.int32))
case("ATAN2", tf.math.atan2, f(3, 4), f(3, 4))
case(
    "EMBEDDING_LOOKUP",
    lambda i: tf.nn.embedding_lookup(tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3)), i),
    np.array([2, 0, 3], np.int32),
)
for _rows, _columns in ((3, 5), (5, 3)):
    case(f"MatrixDiagPart.{_rows}{_columns}", op("MatrixDiagPart"), f(2, _rows, _columns))
    case(f"MatrixSetDiag.{_rows}{_columns}", op("MatrixSetDiag"), f(2, _rows, _columns), f(2, 3))


def main() -> None:
    graphs: dict[str, Any] = {}
    lite: dict[str, Any] = {}
    for name, (function, inputs) in CASES.items():
        made = tf.function(function).get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in inputs])
        outputs = [v.numpy() for v in tf.nest.flatten(made(*map(tf.constant, inputs)))]
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v for k, v in enumerate(outputs)}
        model = lite_of(made)
        if model is not None:
            lite[f"{name}.model"] = np.frombuffer(model, np.uint8)
    pack(FOLDER / "named.npz.xz", graphs)
    pack(FOLDER / "named_lite.npz.xz", lite)


if __name__ == "__main__":
    main()

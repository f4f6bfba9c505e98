"""Makes a small model of each of TensorFlow's operators that `make_cases` and `make_named_cases` leave out, as those do.

    python -m tests.frontends.tensorflow.make_further_cases

Needs TensorFlow 2.21. Writes `cases/further.npz.xz`, and saved models with variables, `cases/gathered` and `cases/copied`.
Graphs of operators that newer ones replaced say so by their version, and run in a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.frontends.tensorflow.make_cases import CASES, R, case, f, n, op, pack, u

CASES.clear()
FOLDER = Path(__file__).parent / "cases"
CPU = "/device:CPU:0"
v1 = tf.compat.v1


def function(of: Any, *like: Any) -> Any:
    return tf.function(of).get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in like])


def chosen(stateless: bool, number: Any, x: Any) -> Any:
    """A case of three functions."""
    branches = [function(of, x) for of in (lambda v: v * 2.0, tf.exp, lambda v: v - 3.0)]
    run = R.StatelessCase if stateless else R.Case
    return run(branch_index=number, input=[x], Tout=[tf.float32], branches=branches)[0]


def either(x: Any) -> Any:
    branches = [function(of, x) for of in (lambda v: v * 2.0, lambda v: v - 1.0)]
    return R.If(
        cond=tf.reduce_sum(x) > 0.0, input=[x], Tout=[tf.float32], then_branch=branches[0], else_branch=branches[1]
    )[0]


def looped(x: Any) -> Any:
    body, cond = (
        function(lambda i, v: (i + 1, tf.tanh(v + 0.1)), np.int32(0), x),
        function(lambda i, v: i < 30, np.int32(0), x),
    )
    return R.While(input=[tf.constant(0), x], cond=cond, body=body)[1]


for _name in ("Digamma", "Lgamma"):
    case(_name, op(_name), u(3, 4) * 4)
case("Erfinv", op("Erfinv"), u(3, 4) * 2 - 1)
case("Ndtri", op("Ndtri"), u(3, 4))
case("CumulativeLogsumexp", op("CumulativeLogsumexp", axis=1), f(3, 4) * 90)
case("CumulativeLogsumexp.back", op("CumulativeLogsumexp", axis=0, exclusive=True, reverse=True), f(3, 4))
case("L2Loss", op("L2Loss"), f(3, 4))
case("Bucketize", op("Bucketize", boundaries=[-1.0, 0.25, 0.5]), f(3, 4))
case("GuaranteeConst", op("GuaranteeConst"), f(3))
case("InTopK", op("InTopK", k=2), f(4, 5), n(4, low=0, high=5))
case("Reverse", op("Reverse", dims=[True, False]), f(3, 4))
for _name in ("Max", "Min", "Prod", "Mean"):
    case(f"Segment{_name}", op(f"Segment{_name}", segment_ids=[0, 0, 1, 3]), f(4, 3))
_SPD = f(2, 3, 5)
_SPD = (_SPD @ _SPD.transpose(0, 2, 1)).astype(np.float32)
_SQUARE = (f(2, 3, 3) + 3 * np.eye(3)).astype(np.float32)
case("Cholesky", op("Cholesky"), _SPD)
for _turned in (False, True):
    case(f"MatrixInverse.{_turned}", op("MatrixInverse", adjoint=_turned), _SQUARE)
    case(f"MatrixSolve.{_turned}", op("MatrixSolve", adjoint=_turned), _SQUARE, f(2, 3, 2))
    for _lower in (False, True):
        case(
            f"MatrixTriangularSolve.{_turned}.{_lower}",
            op("MatrixTriangularSolve", adjoint=_turned, lower=_lower),
            _SQUARE,
            f(2, 3, 2),
        )
case("UniqueV2", lambda x: tuple(R.UniqueV2(x=x, axis=[0])), n(6, 2, low=0, high=2))
case("UniqueWithCountsV2", lambda x: tuple(R.UniqueWithCountsV2(x=x, axis=[0])), n(9, low=0, high=4))
case(
    "QuantizeAndDequantizeV2",
    lambda x: R.QuantizeAndDequantizeV2(input=x, input_min=-1.3, input_max=0.9, range_given=True, num_bits=5),
    f(3, 40),
)
case(
    "QuantizeAndDequantizeV3",
    lambda x: R.QuantizeAndDequantizeV3(
        input=x, input_min=0.0, input_max=1.9, num_bits=6, range_given=True, signed_input=False
    ),
    f(3, 40),
)
case(
    "QuantizeAndDequantizeV4",
    lambda x: R.QuantizeAndDequantizeV4(
        input=x, input_min=-1.0, input_max=1.9, range_given=True, narrow_range=True, round_mode="HALF_UP"
    ),
    f(3, 40),
)
case(
    "MaxPoolV2", lambda x: R.MaxPoolV2(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME"), f(1, 5, 5, 2)
)
for _padding, _rate in (("SAME", 1), ("VALID", 2)):
    case(
        f"ExtractImagePatches.{_padding}",
        op("ExtractImagePatches", ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, _rate, 1, 1], padding=_padding),
        f(1, 6, 5, 2),
    )
for _name in ("DynamicStitch", "ParallelDynamicStitch"):
    case(
        _name,
        lambda x, y, o=_name: getattr(R, o)(indices=[[0, 4], [[1, 2], [0, 3]]], data=[x, y]),
        f(2, 3),
        f(2, 2, 3),
    )
case("Case", lambda k, x: chosen(False, k, x), np.array(1, np.int32), f(3))
case("StatelessCase", lambda k, x: chosen(True, k, x), np.array(7, np.int32), f(3))
case("StatelessCase.known", lambda x: chosen(True, tf.constant(1), x), f(3))
case("If.stateful", either, f(3))
case("While.stateful", looped, f(3))
case(
    "RemoteCall",
    lambda x: R.RemoteCall(target=CPU, args=[x], Tout=[tf.float32], f=function(lambda v: v * 2.0, x))[0],
    f(3),
)


INDICES = np.array([[0, 1], [2, 0], [2, 3]], np.int64)
case(
    "SparseReshape",
    lambda i: tuple(R.SparseReshape(input_indices=i, input_shape=[3, 4], new_shape=[2, -1, 3])),
    INDICES,
)
case(
    "SparseReorder",
    lambda i, v: tuple(R.SparseReorder(input_indices=i, input_values=v, input_shape=[3, 4])),
    INDICES[[2, 0, 1]],
    f(3),
)
case(
    "SparseFillEmptyRows",
    lambda i, v: tuple(R.SparseFillEmptyRows(indices=i, values=v, dense_shape=[5, 4], default_value=-1.0)),
    INDICES,
    f(3),
)
case(
    "SparseFillEmptyRows.full",
    lambda i, v: tuple(R.SparseFillEmptyRows(indices=i, values=v, dense_shape=[3], default_value=-1.0)),
    np.array([[2], [0], [1]], np.int64),
    f(3),
)


def listed(push: bool) -> Any:
    """Lists that grow, in a loop that is written out."""

    def computed(x: Any) -> Any:
        made = R.EmptyTensorList(element_shape=[3], max_num_elements=-1, element_dtype=tf.float32)
        for k in range(3):
            made = R.TensorListPushBack(input_handle=made, tensor=x[k] * (k + 1.0))
        if push:
            return R.TensorListStack(input_handle=made, element_shape=[3], element_dtype=tf.float32)
        rest, last = R.TensorListPopBack(input_handle=made, element_shape=[3], element_dtype=tf.float32)
        whole = R.TensorListConcatV2(input_handle=rest, element_shape=[3], leading_dims=[-1], element_dtype=tf.float32)
        shape = R.TensorListElementShape(input_handle=rest, shape_type=tf.int32)
        return last, *whole, R.TensorListLength(input_handle=rest), shape

    return computed


def grown(steps: int) -> Any:
    """A list that grows in a loop of some *steps*, by its end or by places behind it."""

    def computed(x: Any) -> Any:
        made = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3])
        return tf.while_loop(
            lambda i, v, a: i < steps, lambda i, v, a: (i + 1, tf.tanh(v + 0.1), a.write(i, v)), [0, x, made]
        )[2].stack()

    return computed


def pushed(x: Any) -> Any:
    """A list that each iteration of a loop, as many as a run says, appends to."""
    first = R.EmptyTensorList(element_shape=[3], max_num_elements=-1, element_dtype=tf.float32)
    made = tf.while_loop(
        lambda v, a: tf.reduce_sum(v) < 20.0,
        lambda v, a: (v * 1.5 + 0.5, R.TensorListPushBack(input_handle=a, tensor=v)),
        [tf.abs(x), first],
    )[1]
    return R.TensorListStack(input_handle=made, element_shape=[3], element_dtype=tf.float32)


def pieces(x: Any) -> Any:
    made = R.TensorListSplit(tensor=x, element_shape=[2, 3], lengths=[2, 2, 2])
    return R.TensorListGather(input_handle=made, indices=[2, 0], element_shape=[2, 3], element_dtype=tf.float32)


case("TensorListPushBack", listed(True), f(3, 3))
case("TensorListPopBack", listed(False), f(3, 3))
case("TensorListPushBack.loop", pushed, f(3))
case("TensorListSetItem.grown", grown(4), f(3))
case("TensorListSetItem.grown in a loop", grown(40), f(3))
case("TensorListSplit", pieces, f(6, 3))


def old_array(x: Any) -> Any:
    """TensorFlow 1's lists."""
    made = R.TensorArrayV3(size=3, dtype=tf.float32)
    flow = R.TensorArraySplitV3(handle=made.handle, value=x, lengths=[2, 2, 2], flow_in=made.flow)
    size = R.TensorArraySizeV3(handle=made.handle, flow_in=flow)
    return *R.TensorArrayConcatV3(handle=made.handle, flow_in=flow, dtype=tf.float32), size


case("TensorArraySizeV3", old_array, f(6, 3))


def lstm(peephole: bool) -> list[Any]:
    """The inputs of a cell of 3 inputs and 4 outputs: memory, output, weight, peepholes, bias."""
    return [f(2, 4) * 3, f(2, 4), f(7, 16), *[f(4) if peephole else np.zeros(4, np.float32) for _ in range(3)], f(16)]


for _seen in (False, True):
    case(
        f"LSTMBlockCell.{_seen}",
        lambda x, *v, s=_seen: tuple(op("LSTMBlockCell", forget_bias=0.5, cell_clip=1.5, use_peephole=s)(x, *v)),
        f(2, 3),
        *lstm(_seen),
    )
    case(
        f"BlockLSTM.{_seen}",
        lambda x, *v, s=_seen: tuple(op("BlockLSTM", cell_clip=1.5, use_peephole=s)(tf.constant(5, tf.int64), x, *v)),
        f(5, 2, 3),
        *lstm(_seen),
    )
case(
    "BlockLSTM.length",
    lambda k, x, *v: op("BlockLSTM", forget_bias=0.0, cell_clip=-1.0)(k, x, *v)[
        1::5
    ],  # the gates behind it are what was there
    np.array(17, np.int64),
    f(20, 2, 3),
    *lstm(False),
)
case(
    "BlockLSTMV2",
    lambda x, *v: tuple(op("BlockLSTMV2")(tf.constant(4, tf.int64), x, *v)),
    f(4, 2, 3),
    *lstm(False),
)
case("GRUBlockCell", lambda *v: tuple(op("GRUBlockCell")(*v)), f(2, 3), f(2, 4), f(7, 8), f(7, 4), f(8), f(4))


def one_node(name: str, version: int, inputs: Sequence[Any], results: int, **attributes: Any) -> Any:
    """Returns the graph of one node of an operator that is there up to a *version* of graphs."""
    graph = v1.GraphDef()
    graph.versions.producer = version
    for k, x in enumerate(inputs):
        given = graph.node.add(name=f"x{k}", op="Placeholder")
        given.attr["dtype"].type = tf.float32.as_datatype_enum
        given.attr["shape"].shape.CopyFrom(tf.TensorShape(x.shape).as_proto())
    node = graph.node.add(name="y", op=name, input=[f"x{k}" for k in range(len(inputs))])
    node.attr["T"].type = tf.float32.as_datatype_enum
    for key, value in attributes.items():
        setattr(node.attr[key], "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f", value)
    for k in range(results):
        graph.node.add(name=f"y{k}", op="Identity", input=[f"y:{k}"]).attr["T"].type = (
            tf.int32 if k else tf.float32
        ).as_datatype_enum
    return graph


def run(graph: Any, inputs: Sequence[Any]) -> list[Any]:
    """Returns what a graph of one result computes."""
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(graph, name="")
        return [session.run("y0:0", {f"x{k}:0": x for k, x in enumerate(inputs)})]


def replaced_cases() -> dict[str, tuple[list[Any], bytes, list[Any]]]:
    """Cases of replaced operators; TensorFlow has no kernel for `TopK` any more, whose results are those of `TopKV2`."""
    given = [f(3, 7)]
    results = [v.numpy() for v in R.TopKV2(input=given[0], k=3)]
    found = {"TopK": (given, one_node("TopK", 6, given, 2, k=3).SerializeToString(), results)}
    for scaled in (False, True):
        given = [f(2, 3, 4, 3), f(3), u(3), f(3), f(3)]
        settings = {"variance_epsilon": 0.01, "scale_after_normalization": scaled}
        graph = one_node("BatchNormWithGlobalNormalization", 8, given, 1, **settings)
        found[f"BatchNormWithGlobalNormalization.{scaled}"] = (given, graph.SerializeToString(), run(graph, given))
    return found


class Gathered(tf.Module):  # type: ignore[misc]
    """Rows of a variable, and elements of it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = tf.Variable(f(5, 4))

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32, name="x")])  # type: ignore[untyped-decorator]
    def __call__(self, x: Any) -> Any:
        rows = R.ResourceGather(resource=self.table.handle, indices=x, dtype=tf.float32)
        pairs = tf.stack([x, x % 4], 1)
        return rows * R.ResourceGatherNd(resource=self.table.handle, indices=pairs, dtype=tf.float32)[:, None]


def save(module: Any, folder: Path, x: Any, **how: Any) -> None:
    tf.saved_model.save(module, str(folder), **how)
    (folder / "fingerprint.pb").unlink(missing_ok=True)
    (folder / "assets").rmdir()
    np.savez(folder / "wanted.npz", input=x, output=module(tf.constant(x)).numpy())


def main() -> None:
    graphs: dict[str, Any] = {}
    for name, (of, inputs) in CASES.items():
        print(name, flush=True)
        made = function(of, *inputs)
        outputs = [v.numpy() for v in tf.nest.flatten(made(*map(tf.constant, inputs)))]
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v for k, v in enumerate(outputs)}
    for name, (inputs, graph, outputs) in replaced_cases().items():
        graphs[f"{name}.graph"] = np.frombuffer(graph, np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v for k, v in enumerate(outputs)}
    pack(FOLDER / "further.npz.xz", graphs)
    gathered = Gathered()
    save(
        gathered, FOLDER / "gathered", np.array([4, 0, 2], np.int32), signatures={"serving_default": gathered.__call__}
    )
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.Input((4,)), tf.keras.layers.Dense(5, activation="tanh"), tf.keras.layers.Dense(3)]
    save(tf.keras.Sequential(layers), FOLDER / "copied", f(2, 4))


if __name__ == "__main__":
    main()

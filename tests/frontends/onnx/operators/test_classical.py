"""Operators of classical machine learning against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.frontends.onnx.nodes import Array, by_runtime, check_like_runtime, floats, imported, model_of, node

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError, RuntimeFailure

X: Final = {"x": floats(9, 4)}


def classical(
    op: str, feeds: Mapping[str, Array], outputs: str = "y", version: int = 3, **attributes: Any
) -> ModelProto:
    made = node(op, " ".join(feeds), outputs, **attributes)
    made.domain = "ai.onnx.ml"
    kinds = {n: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()}
    model = model_of([made], kinds, outputs.split())
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    return model


FEATURES: Final[list[tuple[str, Mapping[str, Array], dict[str, Any]]]] = [
    ("Binarizer", X, {"threshold": 0.25}),
    ("Scaler", X, {"offset": [0.5, -1.0, 0.0, 2.0], "scale": [2.0, 0.5, 1.0, -1.0]}),
    ("Scaler", {"x": np.arange(8, dtype=np.int64).reshape(2, 4)}, {"offset": [0.5], "scale": [2.0]}),
    ("Normalizer", X, {"norm": "L1"}),
    ("Normalizer", X, {"norm": "L2"}),
    ("Normalizer", {"x": np.abs(X["x"])}, {"norm": "MAX"}),
    (
        "Imputer",
        {"x": np.array([[1, np.nan], [np.nan, 4]], np.float32)},
        {"imputed_value_floats": [7.0, 8.0], "replaced_value_float": np.nan},
    ),
    ("Imputer", {"x": np.array([[1, 2], [2, 3]])}, {"imputed_value_int64s": [9], "replaced_value_int64": 2}),
    ("ArrayFeatureExtractor", {**X, "at": np.array([[2, 0, 3]])}, {}),
    ("FeatureVectorizer", {**X, "z": floats(9, 2, seed=1)}, {"inputdimensions": [4, 2]}),
    ("OneHotEncoder", {"x": np.array([3, 1, 7, 3])}, {"cats_int64s": [1, 3, 5]}),
    ("OneHotEncoder", {"x": np.array([[3, 1], [5, 3]])}, {"cats_int64s": [5, 1, 3], "zeros": 0}),
    (
        "LabelEncoder",
        {"x": np.array([[4, 2], [9, 4]])},
        {"keys_int64s": [9, 4, 1], "values_floats": [0.5, 1.5, 2.5], "default_float": -7.0},
    ),
    (
        "LabelEncoder",
        {"x": np.array([0.5, np.nan, 3, -0.0], np.float32)},
        {"keys_floats": [np.nan, 0.0, 0.5], "values_int64s": [1, 2, 3], "version": 4},
    ),
    *[
        (
            "SVMRegressor",
            X,
            {
                "kernel_type": kind,
                "kernel_params": [0.3, 0.5, 3.0],
                "n_supports": 5,
                "rho": [0.25],
                "support_vectors": floats(20, seed=7).tolist(),
                "coefficients": floats(5, seed=8).tolist(),
                "one_class": one,
            },
        )
        for kind, one in (("LINEAR", 0), ("POLY", 0), ("RBF", 0), ("SIGMOID", 0), ("RBF", 1))
    ],
    (
        "SVMRegressor",
        X,
        {"coefficients": floats(4, seed=8).tolist(), "rho": [0.25], "n_supports": 0, "kernel_params": [0.0, 0.0, 0.0]},
    ),
    ("LinearRegressor", X, {"coefficients": floats(8, seed=2).tolist(), "intercepts": [0.5, -1.0], "targets": 2}),
]


@pytest.mark.parametrize(("op", "feeds", "attributes"), FEATURES)
def test_features(op: str, feeds: Mapping[str, Array], attributes: dict[str, Any]) -> None:
    check_like_runtime(classical(op, feeds, **attributes), feeds)


@pytest.mark.parametrize(
    ("elements", "given"),
    [([5, 4, 1], {"cats_int64s": [5, 1, 3]}), (["b", "d", "a"], {"cats_strings": ["b", "a", "c"]})],
)
def test_an_element_of_no_category_is_an_error(elements: list[object], given: dict[str, Any]) -> None:
    x = np.array(elements, object if isinstance(elements[0], str) else None)
    compiled = weft.compile(classical("OneHotEncoder", {"x": x}, zeros=0, **given))
    np.testing.assert_array_equal(compiled(x[[0, 2]].repeat(2)[:3]), [[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    with pytest.raises(
        RuntimeFailure, match="OneHotEncoder /y: element 2 of x, counted from 1, is none of its 3 categories"
    ):
        compiled(x)


@pytest.mark.parametrize("threshold", [-0.5, 0.5, np.inf])
def test_thresholds_between_integers(threshold: float) -> None:
    x = {"x": np.array([-1, 0, 1])}
    (made,) = imported(classical("Binarizer", x, threshold=threshold), x)[1]
    np.testing.assert_array_equal(made, (x["x"] > threshold).astype(np.int64))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(transform: str, classes: int) -> None:
    attributes = {
        "coefficients": floats(4 * classes, seed=3).tolist(),
        "intercepts": floats(classes, seed=4).tolist(),
        "classlabels_ints": [5, -2, 11][:classes],
        "post_transform": transform,
    }
    check_like_runtime(classical("LinearClassifier", X, "label scores", **attributes), X, atol=1e-5)


def trees(side: str, targets: int, mode: str = "BRANCH_LEQ", *, least: float = -1.0) -> dict[str, Any]:
    """Two trees of three tests each, over four features, and a tree that is a leaf."""
    rng = np.random.default_rng(targets)
    node_ids, tree_ids = [*range(7), *range(7), 0], [0] * 7 + [1] * 7 + [2]
    modes = [*[mode] * 3, *["LEAF"] * 4] * 2 + ["LEAF"]
    inner = zip(tree_ids, node_ids, modes, strict=True)
    leaves = [(t, n) for t, n, m in inner if m == "LEAF" for _ in range(targets)]
    return {
        "nodes_treeids": tree_ids,
        "nodes_nodeids": node_ids,
        "nodes_modes": modes,
        "nodes_featureids": [0, 1, 2, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0],
        "nodes_values": rng.uniform(-1, 1, 15).astype(np.float32).tolist(),
        "nodes_truenodeids": [1, 3, 5, *[0] * 4, 1, 3, 5, *[0] * 5],
        "nodes_falsenodeids": [2, 4, 6, *[0] * 4, 2, 4, 6, *[0] * 5],
        "nodes_missing_value_tracks_true": [1, 0, 1, *[0] * 4, 0, 1, 1, *[0] * 5],
        f"{side}_treeids": [t for t, _ in leaves],
        f"{side}_nodeids": [n for _, n in leaves],
        f"{side}_ids": [k % targets for k in range(len(leaves))],
        f"{side}_weights": rng.uniform(least, 1, len(leaves)).astype(np.float32).tolist(),
    }


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
def test_trees_that_regress(aggregate: str, mode: str) -> None:
    x = {"x": np.where(np.arange(36).reshape(9, 4) % 7 == 3, np.nan, X["x"]).astype(np.float32)}
    attributes = trees("target", 2, mode) | {"n_targets": 2, "aggregate_function": aggregate}
    attributes["base_values"] = [0.5, -0.5]
    graph = check_like_runtime(classical("TreeEnsembleRegressor", x, **attributes), x)
    assert graph.nodes[0].op == "tree_ensemble"


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_trees_that_classify(transform: str) -> None:
    attributes = trees("class", 3) | {"classlabels_int64s": [4, 7, 1], "post_transform": transform}
    check_like_runtime(classical("TreeEnsembleClassifier", X, "label scores", **attributes), X)


def test_two_classes_with_weights_of_their_own() -> None:
    """ONNX Runtime gives the labels 0 and 1 here, whatever the classes are called; ONNX's reference evaluator their own."""
    attributes = trees("class", 2) | {"classlabels_int64s": [4, 7], "post_transform": "SOFTMAX"}
    model = classical("TreeEnsembleClassifier", X, "label scores", **attributes)
    for a, b in zip(imported(model, X)[1], ReferenceEvaluator(model).run(None, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("least", [-1.0, 0.0])
def test_trees_whose_weights_are_of_one_class_of_two(transform: str, least: float) -> None:
    attributes = trees("class", 1, least=least) | {"classlabels_int64s": [4, 7], "post_transform": transform}
    check_like_runtime(classical("TreeEnsembleClassifier", X, "label scores", **attributes), X)


def refusal(op: str, feeds: Mapping[str, Array], **attributes: Any) -> str:
    with pytest.raises(ModelError) as caught:
        from_onnx(classical(op, feeds, "label scores" if op.endswith("Classifier") else "y", **attributes))
    return str(caught.value)


def test_refusals() -> None:
    circle = trees("target", 1) | {"nodes_truenodeids": [0, 3, 5, *[0] * 4, 1, 3, 5, *[0] * 5]}
    assert "its nodes are no trees: one is missing, or reached twice" in refusal("TreeEnsembleRegressor", X, **circle)
    far = trees("target", 1) | {"nodes_featureids": [4, *[0] * 14]}
    assert "its trees test feature 4 of" in refusal("TreeEnsembleRegressor", X, **far)
    short = trees("target", 1) | {"nodes_truenodeids": [1]}
    assert "its trees should be equally long, and are" in refusal("TreeEnsembleRegressor", X, **short)
    missing = trees("target", 1) | {"nodes_truenodeids": [9, *[0] * 14]}
    assert "its nodes are no trees: one is missing" in refusal("TreeEnsembleRegressor", X, **missing)
    assert "only one of its keys and its input is of strings" in refusal(
        "LabelEncoder", X, keys_strings=["a"], values_floats=[1.0]
    )
    assert "its attribute 'norm' is 'L3'" in refusal("Normalizer", X, norm="L3")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tree_roots": [1]}, "a tree begins at node 1, and there are 1"),
        ({"tree_roots": [-1]}, "a tree begins at node -1, and there are 1"),
        ({"nodes_featureids": [0, 1]}, "its trees should be equally long, and are"),
        ({"leaf_targetids": [0]}, r"its trees should be equally long, and are \[1, 2\]"),
    ],
)
def test_trees_of_damaged_tables(changed: dict[str, Any], said: str) -> None:
    table: dict[str, Any] = {
        "tree_roots": [0],
        "nodes_modes": numpy_helper.from_array(np.array([0], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0.5], np.float32)),
        "leaf_weights": numpy_helper.from_array(np.array([1, 2], np.float32)),
        "leaf_targetids": [0, 0],
        **{f"nodes_{k}": [0] for k in ("featureids", "truenodeids")},
        **{f"nodes_{k}": [1] for k in ("trueleafs", "falsenodeids", "falseleafs")},
    }
    from_onnx(classical("TreeEnsemble", X, version=5, **table))
    with pytest.raises(ModelError, match=f"TreeEnsemble /y: .*{said}"):
        from_onnx(classical("TreeEnsemble", X, version=5, **table | changed))


POOL: Final[dict[str, Any]] = {
    "pool_int64s": [2, 3, 5, 3, 5, 2, 2, 7, 1, 3, 2, 5, 5, 1],
    "ngram_counts": [0, 2, 8],
    "ngram_indexes": [0, 3, 1, 4, 2, 6, 5],
    "weights": [0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 4.0],
}
"""Two tokens, three pairs and two triples."""


def ngrams(shape: tuple[int | str, ...], mode: str, least: int, most: int, skips: int) -> ModelProto:
    spans: dict[str, Any] = {"min_gram_length": least, "max_gram_length": most, "max_skip_count": skips}
    return model_of([node("TfIdfVectorizer", "x", mode=mode, **spans, **POOL)], {"x": (TensorProto.INT64, shape)})


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most", "skips"), [(1, 1, 3), (1, 3, 0), (2, 3, 2), (3, 3, 1)])
def test_counts_of_ngrams(mode: str, least: int, most: int, skips: int) -> None:
    feeds = {"x": np.array([[5, 3, 5, 2, 7, 2, 1, 3], [2, 2, 5, 5, 1, 1, 9, 2]], np.int64)}
    check_like_runtime(ngrams((2, 8), mode, least, most, skips), feeds)


def test_sequences_of_tokens_of_any_length() -> None:
    model = weft.compile(ngrams(("rows", "length"), "TF", 1, 3, 2))
    tokens = np.array([[5, 3, 5, 2, 7, 2, 1, 3], [2, 2, 5, 5, 1, 1, 9, 2]], np.int64)
    for length in (1, 2, 5, 8):
        feeds = {"x": tokens[:, :length].copy()}
        fixed = weft.compile(ngrams((2, length), "TF", 1, 3, 2))
        np.testing.assert_array_equal(model(**feeds), fixed(**feeds))
    with pytest.raises(ModelError, match="TfIdfVectorizer /y: the length of its sequences is symbolic"):
        from_onnx(ngrams((1, "length"), "TF", 1, 1, 65))


@pytest.mark.parametrize("columns", [[0, 3, 1, 4, 2, 6, -1], [0, 3, 1, 4, 2, 6, 1 << 40]])
def test_columns_of_ngrams_that_are_none(columns: list[int]) -> None:
    model = ngrams((2, 8), "IDF", 1, 3, 0)
    (given,) = [a for a in model.graph.node[0].attribute if a.name == "ngram_indexes"]
    given.ints[:] = columns
    with pytest.raises(
        ModelError, match=f"TfIdfVectorizer /y: its ngram_indexes reach from {min(columns)} to {max(columns)}"
    ):
        from_onnx(model)


def test_pools_without_ngrams_and_skips_beyond_a_row() -> None:
    feeds = {"x": np.array([[5, 3, 5, 2, 7, 2, 1, 3]], np.int64)}
    far, all_ = ngrams((1, 8), "TF", 2, 3, 1 << 60), ngrams((1, 8), "TF", 2, 3, 8)
    np.testing.assert_array_equal(imported(far, feeds)[1][0], imported(all_, feeds)[1][0])
    empty = ngrams((1, 8), "TF", 1, 1, 0)
    (counts,) = [a for a in empty.graph.node[0].attribute if a.name == "ngram_counts"]
    counts.ints[:] = []
    assert not imported(empty, feeds)[1][0].any()


@pytest.mark.parametrize(
    ("classes", "more"),
    [
        (2, {}),
        (2, {"post_transform": "LOGISTIC"}),
        (3, {"kernel_type": "POLY"}),
        (4, {"kernel_type": "LINEAR"}),
    ],
)
def test_support_vectors_vote(classes: int, more: dict[str, Any]) -> None:
    x = {"x": floats(40, 4)}
    model = support_vectors(classes, x, **more)
    _, (labels, _) = imported(model, x)
    assert len(set(labels.tolist())) > 1
    check_like_runtime(model, x, rtol=1e-4, atol=1e-5)


def test_probabilities_of_two_classes() -> None:
    """ONNX Runtime comes near them step by step, and stops where they are off by 0.005 / 2."""
    x = {"x": floats(40, 4)}
    _, (_, scores) = imported(support_vectors(2, x), x)
    model = support_vectors(2, x, prob_a=[-1.5], prob_b=[0.2])
    _, (labels, found) = imported(model, x)
    wanted = 1 / (1 + np.exp(-1.5 * scores[:, 1].astype(np.float64) + 0.2))
    np.testing.assert_allclose(found, np.stack([wanted, 1 - wanted], 1).clip(1e-7, 1 - 1e-7), rtol=1e-5, atol=1e-7)
    of_runtime = by_runtime(model, x)
    assert labels.tolist() == of_runtime[0].tolist()
    np.testing.assert_allclose(found, of_runtime[1], atol=0.005)


@pytest.mark.parametrize("classes", [3, 4])
def test_probabilities_of_several_classes(classes: int) -> None:
    """Coupled step by step as ONNX Runtime, and LIBSVM, do it: rows are left alone once they are near enough."""
    x, pairs = {"x": floats(200, 4)}, classes * (classes - 1) // 2
    slopes = np.linspace(-1.5, -0.5, pairs).tolist()
    model = support_vectors(classes, x, prob_a=slopes, prob_b=(0.1 * floats(pairs, seed=2)).tolist())
    _, (labels, found) = imported(model, x)
    of_runtime = by_runtime(model, x)
    assert labels.tolist() == of_runtime[0].tolist()
    np.testing.assert_allclose(found, of_runtime[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def support_vectors(classes: int, x: Mapping[str, Array], **more: Any) -> ModelProto:
    """Makes a model of a support vector machine for some classes."""
    counts = [2, 3, 2, 2][:classes]
    total, pairs = sum(counts), classes * (classes - 1) // 2
    attributes: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.3, 0.5, 3.0],
        "vectors_per_class": counts,
        "support_vectors": floats(total * 4, seed=3).tolist(),
        "coefficients": (4 * floats(total * (classes - 1), seed=4)).tolist(),
        "rho": (0.1 * floats(pairs, seed=9)).tolist(),
        "classlabels_ints": list(range(5, 5 + classes)),
    }
    return classical("SVMClassifier", x, "label scores", **attributes | more)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [3, 7]}, {"classlabels_strings": ["no", "yes"]}])
def test_scores_become_maps_in_a_session(labels: dict[str, Any], tmp_path: Path) -> None:
    """Compiled models give the scores; sessions, of saved models too, lists of dicts as ONNX Runtime's."""
    x = floats(5, 2)
    model = classical("ZipMap", {"x": x}, **labels)
    kind = TensorProto.STRING if "classlabels_strings" in labels else TensorProto.INT64
    scores = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_map_type_proto(kind, scores)))
    data = model.SerializeToString()
    wanted = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    compiled = weft.compile(data)
    np.testing.assert_array_equal(compiled.run([x])[0], x)
    compiled.save(tmp_path / "maps.weft")
    for source in (data, str(tmp_path / "maps.weft")):
        assert weft.InferenceSession(source).run(None, {"x": x}) == wanted


def test_maps_of_too_few_labels_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        from_onnx(classical("ZipMap", {"x": floats(5, 3)}, classlabels_int64s=[1, 2]))
    assert caught.value.message == "it has 2 labels for scores of x: f32[5, 3]"

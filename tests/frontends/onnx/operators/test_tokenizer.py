"""ONNX Runtime's `Tokenizer` against itself, and the vectorizers of text that skl2onnx writes with it against scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import weft
from weft.driver.build import build
from weft.driver.checking.reference import run_graph

TEXTS = np.array(
    ["", "a b  c", "Zürich, 12.5 km", "one,two;;three", "ab" * 20, "  ", "x", "日本 語,é", "tab\tand\nline"], object
)
DEFAULTS = {"mark": 0, "mincharnum": 1, "pad_value": "#"}
CASES: dict[str, dict[str, Any]] = {
    "words": {"tokenexp": "[a-zA-Z0-9_]+"},
    "characters": {"tokenexp": "."},
    "characters by no separator": {"separators": [""]},
    "longest": {"tokenexp": "a|ab|abab"},
    "borders": {"tokenexp": r"\b\w\w+\b"},
    "beginning": {"tokenexp": "^[a-z]"},
    "long ones, marked": {"tokenexp": "[^ ]+", "mincharnum": 2, "mark": 1},
    "separators": {"separators": [" ", ",|;"]},
    "separators of several": {"separators": ["[ ,;]+"], "mark": 1, "pad_value": ""},
    "one after another": {"separators": [",", "t[a-z]", " "], "mincharnum": 2},
    "no such": {"separators": ["q"]},
}


def tokenizer(shape: list[Any], **attributes: Any) -> ModelProto:
    node = helper.make_node("Tokenizer", ["x"], ["y"], "/y", domain="com.microsoft", **{**DEFAULTS, **attributes})
    infos = [helper.make_tensor_value_info("x", TensorProto.STRING, shape), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "tokens", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_runtime(model: ModelProto, x: Any) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("attributes", CASES.values(), ids=CASES)
def test_tokens_are_those_of_onnx_runtime(attributes: dict[str, Any]) -> None:
    model = tokenizer(["n"], **attributes)
    made = build(model)
    compiled = weft.compile(model, threads=1)
    for x in (TEXTS, TEXTS[1:3], TEXTS[6:7], TEXTS[:1]):
        wanted = by_runtime(model, x).tolist()
        assert np.asarray(compiled(x)).tolist() == wanted
        assert run_graph(made.source, {"x": x})[0].tolist() == wanted


def test_rows_and_files(tmp_path: Path) -> None:
    model, x = tokenizer(["n", 3], separators=[" "]), TEXTS.reshape(3, 3)
    compiled = weft.compile(model, threads=1)
    compiled.save(tmp_path / "m.weft")
    assert b"weft.tokens" in (tmp_path / "m.weft").read_bytes()
    wanted = by_runtime(model, x)
    assert np.asarray(compiled(x)).tolist() == wanted.tolist()
    assert np.asarray(weft.load(tmp_path / "m.weft")(x)).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "it should have one of the attributes 'separators' and 'tokenexp'"),
        ({"tokenexp": "a", "separators": ["b"]}, "it should have one of the attributes"),
        ({"tokenexp": "a", "mincharnum": 0}, "its attribute 'mincharnum' is 0"),
        ({"tokenexp": "(a"}, "Tokenizer /y"),
        ({"separators": ["a"] * 65}, "it has 65 separators"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(weft.ModelError) as told:
        weft.compile(tokenizer(["n"], **attributes))
    assert message in str(told.value)
    assert told.value.hint


SENTENCES = np.array(
    ["The cat sat on the mat", "Dogs and cats", "the dog, the CAT and the bird!", "birds sing", "cats sat"] * 4, object
)
VECTORIZERS = {
    "counts": CountVectorizer(),
    "pairs": CountVectorizer(ngram_range=(1, 2)),
    "characters": CountVectorizer(analyzer="char", ngram_range=(1, 2)),
    "pattern": CountVectorizer(token_pattern="[a-z]+", max_features=5),
    "weights": TfidfVectorizer(),
    "weights of pairs": TfidfVectorizer(ngram_range=(1, 2), norm="l1"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("vectorizer", VECTORIZERS.values(), ids=VECTORIZERS)
def test_vectorizers_equal_scikit_learn(vectorizer: Any) -> None:
    fitted = vectorizer.fit(SENTENCES)
    new = np.array([*SENTENCES[:5], "a new bird sat", "nothing known"], object)
    made = weft.compile(converted(fitted), threads=1)(new[:, None])
    np.testing.assert_allclose(made, fitted.transform(new).toarray(), rtol=1e-5, atol=1e-6)


def test_a_classifier_of_text_equals_scikit_learn() -> None:
    labels = np.array(["cat" in text.lower() for text in SENTENCES]).astype(np.int64)
    fitted = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(SENTENCES, labels)
    label, scores = weft.compile(converted(fitted), threads=1)(SENTENCES[:, None])
    np.testing.assert_array_equal(label, fitted.predict(SENTENCES))
    np.testing.assert_allclose(scores, fitted.predict_proba(SENTENCES), rtol=1e-5)


def converted(fitted: Any) -> ModelProto:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"zipmap": False} if hasattr(fitted, "predict_proba") else None
        opsets = {"": 18, "ai.onnx.ml": 3}
        kind = StringTensorType([None, 1])
        model: ModelProto = to_onnx(fitted, initial_types=[("x", kind)], options=options, target_opset=opsets)
        return model

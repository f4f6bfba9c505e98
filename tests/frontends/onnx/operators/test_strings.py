"""Tensors of strings: compiled models against Python's own strings and ONNX Runtime, saved ones among them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper
from tests.frontends.onnx.nodes import by_runtime, model_of, node

import weft
from weft.frontends.string_ids import in_case
from weft.support.errors import InputError, ModelError, RuntimeFailure

STRING = TensorProto.STRING
ML = "ai.onnx.ml"
SPACES = "a  b\tc", "", "  lead and trail  ", "x", "\u3000wide\u00a0spaces\u2028here", "\x1cseparated\x1f"


def strings(*texts: str) -> Any:
    """Returns a vector of strings."""
    return np.array(texts, object)


def string_model(*nodes: NodeProto, inputs: Mapping[str, Sequence[int | str | None]], **more: Any) -> ModelProto:
    """Makes a model whose inputs are strings."""
    model = model_of(nodes, {name: (STRING, shape) for name, shape in inputs.items()}, opset=20, **more)
    model.opset_import.append(helper.make_opsetid(ML, 4))
    return model


def one(op: str, *shapes: Sequence[int | str | None], outputs: str = "y", domain: str = "", **attributes: Any) -> Any:
    """Compiles a model of one node on strings of these shapes."""
    names = "abc"[: len(shapes)]
    made = node(op, " ".join(names), outputs, **attributes)
    made.domain = domain
    return weft.compile(string_model(made, inputs=dict(zip(names, shapes, strict=True)), outputs=outputs.split()))


@pytest.fixture(scope="module")
def splitters() -> dict[tuple[str, int], Any]:
    """Models that split, by delimiter and the most splits."""
    return {
        (by, most): one("StringSplit", ["n"], outputs="y z", delimiter=by, maxsplit=most)
        for by, most in (("", -1), ("", 1), ("ab", -1), (",", 2))
    }


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(st.sampled_from("ab,\u3000 \tü\U0001f600"), max_size=12), min_size=1, max_size=5))
def test_split_as_python_does(splitters: dict[tuple[str, int], Any], texts: list[str]) -> None:
    for (by, most), model in splitters.items():
        wanted = [t.split(by or None, most) for t in texts]
        width = max(map(len, wanted))
        parts, counts = model(strings(*texts))
        assert counts.tolist() == [len(w) for w in wanted]
        assert parts.shape == (len(texts), width)
        assert parts.tolist() == [w + [""] * (width - len(w)) for w in wanted]


def test_strings_without_parts_write_nothing(splitters: dict[tuple[str, int], Any]) -> None:
    """Of white space alone there are no parts: results without elements, beside which nothing may be written."""
    parts, counts = splitters["", -1](strings(*[" "] * 100_000))
    assert parts.shape == (100_000, 0)
    assert not counts.any()


def test_case_leaves_bytes_that_are_no_text() -> None:
    made = one("StringNormalizer", [1], case_change_action="UPPER")(np.array([b"a\xffb\xc3"], object))
    assert made[0].encode("utf-8", "surrogateescape") == b"A\xffB\xc3"


def test_normalizer_changes_case_as_unicode_does() -> None:
    """Every letter whose other case is one letter, in one call."""
    letters = [chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    text = "".join([c for c in letters if len(c.upper()) == len(c.lower()) == 1])
    for action, wanted in (("LOWER", in_case(text, upper=False)), ("UPPER", in_case(text, upper=True))):
        model = one("StringNormalizer", [1], case_change_action=action)
        assert model(strings(text)).tolist() == [wanted]


@pytest.mark.parametrize(
    ("options", "words", "wanted"),
    [
        ({"stopwords": ["b"]}, "a B b", ["a"]),
        ({"stopwords": ["b"], "is_case_sensitive": 1}, "a B b", ["a", "B"]),
        ({"stopwords": ["Ü", "x"], "case_change_action": "UPPER"}, "ü x y", ["Y"]),
        ({"stopwords": ["a"]}, "a A a", [""]),
    ],
)
def test_normalizer_leaves_out_stopwords(options: dict[str, Any], words: str, wanted: list[str]) -> None:
    model = one("StringNormalizer", [1, 3], **options)
    assert model(strings(*words.split()).reshape(1, 3)).tolist() == [wanted]


def test_concat_broadcasts() -> None:
    model = one("StringConcat", [2, "n"], [2, 1])
    a, b = np.array([["x", "", "ü"], ["y", "z", "\x00"]], object), np.array([["1"], [""]], object)
    assert model(a, b).tolist() == (a + b).tolist()


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        (r"a(b|c)*d?", ["a", "abcb", "acd"], ["", "abcde", "ba"]),
        (r"[^@\s]+@\w+\.(com|org)", ["me@site.org", "ü@x.com"], ["@a.org", "me@site.net", "a b@c.com"]),
        (r"(?i)straße|\x{1F600}{2,3}", ["STRAßE", "😀😀", "😀😀😀"], ["😀", "strasse"]),
        (r"\bword\b.*$", ["word", "word up"], ["words"]),
        (r"(a*)*b", ["b", "a" * 3000 + "b"], ["a" * 3000]),
    ],
)
def test_regular_expressions(pattern: str, matched: list[str], others: list[str]) -> None:
    model = one("RegexFullMatch", ["n"], pattern=pattern)
    assert model(strings(*matched, *others)).tolist() == [True] * len(matched) + [False] * len(others)


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"(a)\1", "a backreference"),
        (r"(?=a)b", "a group (?=...)"),
        (r"(?<!a)b", "looking around"),
        (r"a{1001}", "a repetition"),
        (r"(a", "an end without a ')'"),
        (r"a)", "a ')' without"),
        (r"[b-a]", "a range b-a"),
        (r"\p{Greek}", "no general category"),
        (r"((a{1000}){1000}){1000}", "a repetition of more"),
        (r"*a", "nothing that '*' repeats"),
        ("(" * 300, "groups one inside the other"),
    ],
)
def test_what_is_no_regular_expression_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(ModelError) as caught:
        one("RegexFullMatch", [1], pattern=pattern)
    assert what in caught.value.message
    assert "RE2" in (caught.value.hint or "")


# Numbers


def digits(text: str) -> str:
    """Returns the digits of a number that count."""
    return text.partition("e")[0].replace(".", "").strip("-0")


@pytest.mark.parametrize(("kind", "dtype"), [(TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64)])
def test_floats_are_written_in_fewest_digits_and_read_back(kind: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 500, np.uint64) << 1
    with np.errstate(all="ignore"):
        by_chance = bits.view(np.float64).astype(dtype)
    x = np.concatenate(
        [
            by_chance,
            np.array([0, -0.0, 1e-5, 1e-4, 123456.5, 1e15, 1e16, 1e22, np.inf, -np.inf, np.nan, 0.1], dtype),
        ]
    )
    nodes = [node("Cast", "x", "y", to=STRING), node("Cast", "y", "z", to=kind)]
    model = weft.compile(model_of(nodes, {"x": (kind, ["n"])}, ["y", "z"], opset=20))
    with np.errstate(all="ignore"):
        y, z = model(x)
    if dtype is np.float64:
        assert y.tolist() == [repr(float(e)) for e in x]
    finite = [(text, e) for text, e in zip(y, x, strict=True) if np.isfinite(e)]
    assert [digits(text) for text, _ in finite] == [digits(np.format_float_scientific(e)) for _, e in finite]
    np.testing.assert_array_equal(z, x)


def test_integers_and_text_that_is_no_number() -> None:
    model = one("Cast", ["n"], to=TensorProto.INT32)
    assert model(strings(" -12 ", "2147483647")).tolist() == [-12, 2147483647]
    for wrong in ("1.5", "", "0x10", "9" * 30, "1_0", "nan"):
        with pytest.raises(RuntimeFailure, match="string 2 of a, counted from 1, is no number of type i32"):
            model(strings("1", wrong))
    reader = one("Cast", ["n"], to=TensorProto.FLOAT)
    assert reader(strings("1e3", "-inf", "+.5")).tolist() == [1000, -np.inf, 0.5]


@pytest.mark.parametrize(("kind", "dtype"), [(TensorProto.INT8, np.int8), (TensorProto.UINT16, np.uint16)])
def test_numbers_beyond_small_integers_are_refused(kind: int, dtype: Any) -> None:
    model, info = one("Cast", ["n", 2], to=kind), np.iinfo(dtype)
    held = [str(info.min), str(info.max), "1", "2"]
    assert model(np.array(held, object).reshape(2, 2)).reshape(-1).tolist() == [info.min, info.max, 1, 2]
    for beyond in (info.max + 1, info.min - 1):
        given = np.array(["1", "2", str(beyond), str(beyond)], object).reshape(2, 2)
        with pytest.raises(
            RuntimeFailure, match=f"string 3 of a, counted from 1, is no number of type {info.dtype.kind}"
        ):
            model(given)


# Moved, compared, encoded


def text_tensor(name: str, shape: list[int], text: str) -> TensorProto:
    """Returns a tensor of one string."""
    return TensorProto(name=name, data_type=STRING, dims=shape, string_data=[text.encode()])


def test_strings_are_moved_and_compared_as_others_are() -> None:
    nodes = [
        node("Concat", "a b", "all", axis=0),
        node("Gather", "all at", "chosen"),
        node("Reshape", "chosen shape", "y"),
        node("Equal", "chosen word", "is_word"),
        node("Where", "is_word chosen other", "replaced"),
        node("Shape", "all", "size"),
    ]
    model = string_model(*nodes, inputs={"a": [2], "b": ["n"]}, outputs=["y", "is_word", "replaced", "size"])
    model.graph.initializer.extend(
        [
            helper.make_tensor("at", TensorProto.INT64, [4], [3, 0, 0, 1]),
            helper.make_tensor("shape", TensorProto.INT64, [2], [2, 2]),
            text_tensor("word", [1], "two"),
            text_tensor("other", [], "other ü"),
        ]
    )
    y, is_word, replaced, size = weft.compile(model)(strings("one", "two"), strings("x", "three"))
    assert y.tolist() == [["three", "one"], ["one", "two"]]
    assert is_word.tolist() == [False, False, False, True]
    assert replaced.tolist() == ["other ü", "other ü", "other ü", "two"]
    assert size.tolist() == [4]


@pytest.mark.parametrize(
    ("attributes", "wanted"), [({"value_string": ""}, ""), ({"value_strings": ["", "b"]}, ["", "b"])]
)
def test_constants_may_be_empty_strings(attributes: dict[str, Any], wanted: Any) -> None:
    nodes = [node("Constant", "", "c", **attributes), node("Identity", "c", "y")]
    made = weft.compile(model_of(nodes, {}, ["y"], opset=20)).run([])[0]
    assert made.tolist() == wanted


def test_strings_are_handed_to_functions_under_other_names() -> None:
    """Those of a call, and a function's own defaults."""
    inner = node("StringNormalizer", "x", "y", case_change_action="NONE")
    for name, own in (("stopwords", "left_out"), ("case_change_action", "how")):
        kept = [a for a in inner.attribute if a.name != name]
        del inner.attribute[:]
        kind = AttributeProto.STRINGS if name == "stopwords" else AttributeProto.STRING
        inner.attribute.extend([*kept, AttributeProto(name=name, ref_attr_name=own, type=kind)])
    how = helper.make_attribute("how", "UPPER")
    opsets = [helper.make_opsetid("", 20)]
    function = helper.make_function("own", "Without", ["x"], ["y"], [inner], opsets, ["left_out"], [how])
    call = node("Without", "a", "y", left_out=["No"])
    call.domain = "own"
    model = string_model(call, inputs={"a": ["n"]})
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    assert weft.compile(model).run([strings("yes", "no", "NO")])[0].tolist() == ["YES"]


def ml(op: str, kind: int, **attributes: Any) -> ModelProto:
    made = node(op, "x", **attributes)
    made.domain = ML
    model = model_of([made], {"x": (kind, ["n"])}, opset=17)
    model.opset_import.append(helper.make_opsetid(ML, 2))
    return model


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        (STRING, {"keys_strings": ["a", "b", "ü"], "values_int64s": [3, 4, 5], "default_int64": 9}),
        (STRING, {"keys_strings": ["a", "b"], "values_floats": [0.5, 1.5]}),
        (STRING, {"keys_strings": ["a", "b"], "values_strings": ["A", "B"]}),
        (TensorProto.INT64, {"keys_int64s": [1, 2], "values_strings": ["A", "B"], "default_string": "none"}),
    ],
)
def test_label_encoder(kind: int, attributes: dict[str, Any]) -> None:
    x = strings("b", "a", "new", "ü") if kind == STRING else np.array([2, 1, 7], np.int64)
    model = ml("LabelEncoder", kind, **attributes)
    (wanted,) = by_runtime(model, {"x": x})
    assert weft.compile(model).run([x])[0].tolist() == wanted.tolist()


@pytest.mark.parametrize("kind", [STRING, TensorProto.INT64])
def test_category_mapper(kind: int) -> None:
    x = strings("b", "a", "new", "ü") if kind == STRING else np.array([2, 1, 7], np.int64)
    model = ml(
        "CategoryMapper",
        kind,
        cats_strings=["a", "b", "ü"],
        cats_int64s=[1, 2, 5],
        default_int64=-7,
        default_string="none",
    )
    (wanted,) = by_runtime(model, {"x": x})
    assert weft.compile(model).run([x])[0].tolist() == wanted.tolist()


def test_one_hot_and_n_grams() -> None:
    x = strings("b", "a", "c", "a")
    encoder = ml("OneHotEncoder", STRING, cats_strings=["a", "b"])
    np.testing.assert_array_equal(weft.compile(encoder)(x), by_runtime(encoder, {"x": x})[0])
    counter = model_of(
        [
            node(
                "TfIdfVectorizer",
                "x",
                mode="TF",
                min_gram_length=1,
                max_gram_length=2,
                max_skip_count=1,
                pool_strings=["a", "b", "a", "c", "b", "c"],
                ngram_counts=[0, 2],
                ngram_indexes=[0, 1, 2, 3],
            )
        ],
        {"x": (STRING, [4])},
    )
    np.testing.assert_array_equal(weft.compile(counter)(x), by_runtime(counter, {"x": x})[0])


# Borders


def test_saved_models_and_threads(tmp_path: Path) -> None:
    model = one("StringConcat", ["n"], ["n"])
    model.save(tmp_path / "strings.weft")
    loaded = weft.load(tmp_path / "strings.weft")
    assert "string" in str(loaded.inputs[0])

    def call(k: int) -> bool:
        texts = [f"{k} {n % 7}" for n in range(2000)]
        return bool(loaded.run([strings(*texts), strings(*texts)])[0].tolist() == [2 * t for t in texts])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(16)))


def test_bytes_that_are_no_text_come_back_as_they_are() -> None:
    model = one("StringConcat", [2], [2])
    made = model(np.array([b"\xff\xfe", b"a\x00b"], object), strings("", "c"))
    assert [t.encode("utf-8", "surrogateescape") for t in made] == [b"\xff\xfe", b"a\x00bc"]


def test_strings_of_bytes_that_are_no_text_can_be_given_again() -> None:
    model = one("StringConcat", [1], [1])
    made = model(np.array([b"\xff\xfe"], object), strings("ü"))
    again = model(made, made)
    assert again[0].encode("utf-8", "surrogateescape") == b"\xff\xfe\xc3\xbc" * 2
    with pytest.raises(InputError, match="half a surrogate pair, which no encoding has"):
        model(strings("\ud800"), strings("a"))


def test_memory_of_calls_is_given_back() -> None:
    """References of Python's strings, too: a call holds them no longer than it runs."""
    model, text = one("StringConcat", ["n"], ["n"]), "some text" * 100
    x = np.array([text] * 100, object)
    before = sys.getrefcount(text)
    for _ in range(50):
        model(x, x)
    assert sys.getrefcount(text) == before


def test_what_is_refused() -> None:
    model = one("StringConcat", [1], [1])
    with pytest.raises(InputError, match="no strings"):
        model(np.array([1.0]), strings("a"))
    with pytest.raises(InputError, match=r"has 2 dimensions"):
        model(np.array([["a"]], object), strings("a"))
    with pytest.raises(InputError, match="of strings"):
        model.run([strings("a"), strings("b")], out=[np.empty(1, object)])
    with pytest.raises(ModelError, match="its input 0 is a tensor of strings of shape"):
        one("Add", [1], [1])
    with pytest.raises(ModelError, match="numbers of bool are not converted"):
        weft.compile(model_of([node("Cast", "x", to=STRING)], {"x": (TensorProto.BOOL, [1])}))


def test_strings_are_no_state() -> None:
    """The runtime has the strings of a call until the next one alone."""
    model = string_model(node("StringConcat", "a b", "y"), inputs={"a": (2,), "b": (2,)})
    with pytest.raises(ModelError, match="a is a tensor of strings, which can't be a state"):
        weft.compile(model, state={"a": "y"})

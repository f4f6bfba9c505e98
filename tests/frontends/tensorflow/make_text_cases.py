"""Makes small models of TensorFlow's operators on strings and of its tables.

    python -m tests.frontends.tensorflow.make_text_cases

Needs TensorFlow 2.21. Writes `cases/texts.npz.xz`, graphs with their inputs and outputs, and saved models: `cases/tables`, whose
tables have their contents in the graph and in a file, and `cases/vectorized`, a model of Keras that begins with texts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.frontends.tensorflow.make_cases import CASES, R, case, n, pack

CASES.clear()
FOLDER = Path(__file__).parent / "cases"
WORDS = np.array(["abc", "Hello World ", "", "xyz a\u00a0b", "\u00c9t\u00e9 1", "a" * 130])
KEYS = np.array(["b", "x", "", "a"])

for _name in ("StringLower", "StringUpper"):
    case(_name, lambda x, o=_name: getattr(R, o)(input=x), WORDS)
    case(f"{_name}.unicode", lambda x, o=_name: getattr(R, o)(input=x, encoding="utf-8"), WORDS)
case("StringStrip", tf.strings.strip, np.array(["  a b ", "\tx", "", " ", "c\n"]))
case("StaticRegexReplace", lambda x: tf.strings.regex_replace(x, "[aeiou]+", "<>"), WORDS)
case("StaticRegexReplace.first", lambda x: tf.strings.regex_replace(x, "x*", "-", replace_global=False), WORDS)
case("StaticRegexReplace.nothing", lambda x: tf.strings.regex_replace(x, "x*", "-"), WORDS)
case("RegexReplace", lambda x: R.RegexReplace(input=x, pattern="[a-c\\]]", rewrite="_"), WORDS)
case("StaticRegexFullMatch", lambda x: tf.strings.regex_full_match(x, "a.*"), WORDS)
case("RegexFullMatch", lambda x: R.RegexFullMatch(input=x, pattern="[a-z]*"), WORDS)
case("StringSplitV2", lambda x: tuple(R.StringSplitV2(input=x, sep="")), WORDS)
case("StringSplitV2.by", lambda x: tuple(R.StringSplitV2(input=x, sep="l", maxsplit=1)), WORDS)
case("StringToHashBucketFast", lambda x: R.StringToHashBucketFast(input=x, num_buckets=1 << 40), WORDS)
case(
    "StringToHashBucketStrong", lambda x: R.StringToHashBucketStrong(input=x, num_buckets=1000, key=[3, 1 << 40]), WORDS
)
case("AsString", tf.as_string, n(3, 2))
case("StringJoin", lambda x, y: R.StringJoin(inputs=[x, y, "end"], separator="-"), WORDS, WORDS[::-1].copy())
case("StringJoin.plain", lambda x: R.StringJoin(inputs=["begin ", x]), WORDS)
case("moved", lambda x: tf.gather(tf.reshape(tf.stack([x, x[::-1]]), [3, 4]), [2, 0], axis=1)[:, None], WORDS)
case("chosen", lambda x, k: tf.where(k > 0, x, tf.fill(tf.shape(x), "none")), WORDS, n(6))
case("labels", lambda k: tf.gather(tf.constant(["cat", "dog", "bird"]), k), np.array([2, 0, 1], np.int32))
case("compared", lambda x: (x == "abc", x != x[::-1]), WORDS)
case(
    "SparseCross",
    lambda x, k: tf.sparse.to_dense(tf.sparse.cross_hashed([x, k], 1000, hash_key=77)),
    KEYS[:, None],
    np.array([[1], [-7], [9], [1 << 40]], np.int64),
)
for _binary in (False, True):
    case(
        f"RaggedBincount.{_binary}",
        lambda v, s, b=_binary: R.RaggedBincount(
            splits=s, values=v, size=5, weights=np.empty(0, np.float32), binary_output=b
        ),
        np.array([1, 1, 4, 0, 9, 3], np.int64),
        np.array([0, 3, 3, 5, 6], np.int64),
    )


class Tables(tf.Module):  # type: ignore[misc]
    """Tables of strings and numbers, one of which has its lines in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.write_text("x\ny\na b\n")
        table, pairs = tf.lookup.StaticHashTable, tf.lookup.KeyValueTensorInitializer
        self.numbers = table(pairs(["a", "b", "x"], tf.constant([5, 7, 9], tf.int64)), -1)
        self.names = table(pairs(tf.constant([0, 5, 2], tf.int64), ["zero", "five", "two"]), "unknown")
        self.scores = table(pairs(tf.constant([5, -1], tf.int64), [0.5, 0.25]), -2.0)
        whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        lines = tf.lookup.TextFileInitializer(str(path), tf.string, whole, tf.int64, number)
        self.lines = tf.lookup.StaticVocabularyTable(lines, 3)
        self.back = table(tf.lookup.TextFileInitializer(str(path), tf.int64, number, tf.string, whole), "none")

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, name="x")])  # type: ignore[untyped-decorator]
    def __call__(self, x: Any) -> Any:
        k = self.numbers.lookup(x)
        line = self.lines.lookup(x)
        size = self.lines.size()
        return {
            "a": k,
            "b": self.names.lookup(k),
            "c": self.scores.lookup(k),
            "d": line,
            "e": self.back.lookup(line),
            "f": size,
        }


def save(module: Any, folder: Path, given: Any, *, keras: bool = False) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if keras:
        module.export(str(folder), verbose=False)
    else:
        tf.saved_model.save(module, str(folder), signatures={"serving_default": module.__call__})
    (folder / "fingerprint.pb").unlink(missing_ok=True)
    run = tf.saved_model.load(str(folder)).signatures["serving_default"]
    made = run(**{next(iter(run.structured_input_signature[1])): tf.constant(given)})
    np.savez(folder / "wanted.npz", input=given, **{f"output_{k}": as_array(v) for k, v in made.items()})


def as_array(x: Any) -> Any:
    """Returns a tensor as an array that needs no pickle."""
    array = x.numpy()
    if array.dtype != object:
        return array
    return np.array([text.decode() for text in array.reshape(-1)], str).reshape(array.shape)


def vectorized() -> Any:
    """A model that begins with texts."""
    tf.keras.utils.set_random_seed(3)
    words = tf.keras.layers.TextVectorization(output_sequence_length=5)
    words.adapt(["the cat sat on the mat", "a dog sat", "the dog, and the cat!"])
    bag = tf.keras.layers.TextVectorization(output_mode="count")
    bag.adapt(["the cat sat", "a dog"])
    given = tf.keras.Input((1,), dtype="string", name="text")
    x = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(12, 3)(words(given)))
    return tf.keras.Model(
        given, tf.keras.layers.Dense(3)(tf.keras.layers.Concatenate()([x, tf.keras.layers.Flatten()(bag(given))]))
    )


def main() -> None:
    graphs: dict[str, Any] = {}
    for name, (of, inputs) in CASES.items():
        tensors = [tf.constant(i.tolist(), tf.string) if i.dtype.kind == "U" else tf.constant(i) for i in inputs]
        made = tf.function(of).get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in tensors])
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": as_array(v) for k, v in enumerate(tf.nest.flatten(made(*tensors)))}
    pack(FOLDER / "texts.npz.xz", graphs)
    path = Path("/tmp") / "lines.txt"
    save(Tables(path), FOLDER / "tables", KEYS)
    path.unlink()
    save(
        vectorized(),
        FOLDER / "vectorized",
        np.array([["The CAT sat."], ["dog; dog? x"], [""], ["a b c d e f"]]),
        keras=True,
    )


if __name__ == "__main__":
    main()

"""What a model says of its inputs and outputs is kept, with the labels that are packed behind it."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.tflite.flat_writer import buffer_of
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import to_graph
from weft.frontends.tflite.schema import BUILTINS

IMAGE_INPUT = (
    "image",
    "a photograph",
    None,
    (2, (1, (224, 192))),
    [(1, ([127.5], [127.5, 64.0, 0.25]))],
    ([1.0], [-1.0]),
    None,
)
SOUND = ("sound", None, None, (4, (16000, 1)))
SCORES = (
    "scores",
    None,
    None,
    None,
    [(3, (0.25,))],
    None,
    [("labels.txt", None, 2), ("namen.txt", None, 2, "de"), ("words", None, 5)],
)
DESCRIPTION = ("Birds", "tells birds", "v2", [(None, None, [IMAGE_INPUT, SOUND], [SCORES])], "nobody", "CC0")


def model_of(description: bytes) -> bytes:
    """Returns a model that adds two images, and describes itself."""
    add = BUILTINS.index("ADD")
    tensors = [([1, 4], None, None, name) for name in ("x", "z", "y")]
    graph = (tensors, [0, 1], [2], [(None, [0, 1], [2])])
    return buffer_of(
        (3, [(add, None, 1, add)], [graph], "converted", [(), (description,)], None, [("TFLITE_METADATA", 1)]), b"TFL3"
    )


def packed(model: bytes, files: dict[str, str]) -> bytes:
    """Returns a model with files behind it."""
    whole = io.BytesIO(model)
    with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return whole.getvalue()


WHOLE = packed(
    model_of(buffer_of(DESCRIPTION, b"M001")), {"labels.txt": "robin\nwren\n", "namen.txt": "Zaunkönig", "words": "?"}
)


def test_what_a_model_says_is_kept(tmp_path: Path) -> None:
    (tmp_path / "birds.tflite").write_bytes(WHOLE)
    graph = to_graph(tmp_path / "birds.tflite")
    made = graph.metadata
    assert (made.producer_name, made.graph_name, made.description) == ("tflite", "Birds", "tells birds")
    assert made.custom_metadata_map == {
        "version": "v2",
        "author": "nobody",
        "license": "CC0",
        "input.x.name": "image",
        "input.x.description": "a photograph",
        "input.x.color_space": "RGB",
        "input.x.default_size": "224x192",
        "input.x.normalization.mean": "127.5",
        "input.x.normalization.std": "127.5 64.0 0.25",
        "input.x.stats.max": "1.0",
        "input.x.stats.min": "-1.0",
        "input.z.name": "sound",
        "input.z.sample_rate": "16000",
        "input.z.channels": "1",
        "output.y.name": "scores",
        "output.y.score_threshold": "0.25",
        "output.y.labels": "robin\nwren",
        "output.y.labels.de": "Zaunkönig",
    }


def test_it_is_kept_in_an_artifact(tmp_path: Path) -> None:
    compiled = weft.compile(WHOLE)
    x = np.arange(4, dtype=np.float32).reshape(1, 4)
    np.testing.assert_array_equal(compiled(x, x), x * 2)
    compiled.save(tmp_path / "birds.weft")
    kept = weft.InferenceSession(tmp_path / "birds.weft").get_modelmeta()
    assert kept.custom_metadata_map["output.y.labels"] == "robin\nwren"
    assert kept.graph_name == "Birds"


@pytest.mark.parametrize("whole", [model_of(buffer_of(DESCRIPTION, b"M001")), WHOLE[:-30]])
def test_labels_that_are_not_there_are_left_out(whole: bytes) -> None:
    kept = to_graph(whole).metadata.custom_metadata_map
    assert kept["output.y.score_threshold"] == "0.25"
    assert not [key for key in kept if "labels" in key]


def test_a_file_of_labels_that_grows_without_end_is_left_out() -> None:
    whole = packed(model_of(buffer_of(DESCRIPTION, b"M001")), {"labels.txt": "a" * (1 << 22), "namen.txt": "b"})
    kept = to_graph(whole).metadata.custom_metadata_map
    assert "output.y.labels" not in kept
    assert kept["output.y.labels.de"] == "b"


def test_a_description_that_is_damaged() -> None:
    with pytest.raises(weft.ModelError, match="its metadata is damaged or cut short"):
        to_graph(model_of(buffer_of(DESCRIPTION, b"M001")[:40]))


def test_damaged_files_end_in_errors_of_weft() -> None:
    refused = 0
    for seed in range(200):
        rng = random.Random(seed)
        try:
            to_graph(damaged(rng, WHOLE, [b"\xff" * 4, b"\0" * 4, b"PK", b"\x7f"]))
        except weft.WeftError:
            refused += 1
    assert refused > 50

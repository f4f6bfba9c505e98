"""Damaged and unsupported networks: the messages name the layer and the line, and say what to do."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.caffe.networks import NETWORKS, image_of, write
from tests.frontends.caffe.reference import Array, weights_of
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import files_of, frontend_of, to_graph

START = 'name: "n"\ninput: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\n'
CONV = """layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 1 %s } }
"""
BLOBS = {"c": [np.ones((2, 3, 1, 1), np.float32), np.ones(2, np.float32)]}


def network(folder: Path, text: str, weights: bytes | None = None) -> Path:
    (folder / "a.caffemodel").write_bytes(weights_of("n", BLOBS) if weights is None else weights)
    (folder / "a.prototxt").write_text(text)
    return folder / "a.prototxt"


def number(n: int) -> bytes:
    """Returns a number as protocol buffers have it."""
    made = b""
    while n > 127:
        made, n = made + bytes([n & 127 | 128]), n >> 7
    return made + bytes([n])


def field(n: int, content: bytes) -> bytes:
    """Returns field *n* of a message, of bytes."""
    return number(n << 3 | 2) + number(len(content)) + content


def weights_of_blobs(*blobs: bytes) -> bytes:
    """Returns the file of a network whose layer `c` has these blobs."""
    layer = field(1, b"c") + field(2, b"Convolution") + b"".join([field(7, b) for b in blobs])
    return field(1, b"n") + field(100, layer)


def said(model: object) -> str:
    with pytest.raises(weft.ModelError) as told:
        to_graph(model)
    return str(told.value)


def one(kind: str, rest: str = "", bottom: str = "data") -> str:
    return f'layer {{ name: "x" type: "{kind}" bottom: "{bottom}" top: "y" {rest} }}'


def test_all_unsupported_layers_are_told_at_once(tmp_path: Path) -> None:
    text = START + one("Foo") + "\n" + one("PriorBox") + "\n" + one("Foo")
    assert said(network(tmp_path, text)).split("\n  hint: the layers are AbsVal, ")[0] == (
        "the model uses 2 operators that Weft does not have:\n"
        "  Foo, 2 nodes: x (line 3), x (line 5)\n"
        "  PriorBox, 1 node: x (line 4)"
    )
    assert 'layer { type: "Input" }' in said(network(tmp_path, START + one("Data")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            START + CONV % "stride: x",
            "Convolution c, line 3: stride: x (line 4) should be an integer\n  hint: mend this line of",
        ),
        (START + CONV % "stride: 0", "stride: 0 (line 4) should be 1 or more"),
        (START + CONV % "group: 2", "group: 2 does not divide 3 channels and num_output: 2"),
        (START + CONV % "bias_term: 7", "bias_term: 7 (line 4) should be one of true, false, 1, 0"),
        (
            START + CONV % "kernel_w: 2 kernel_h: 1",
            "its weight should be (2, 3, 1, 2), and the .caffemodel has (2, 3, 1, 1)",
        ),
        (
            START + (CONV % "").replace('"c" type', '"d" type'),
            "its weight, blob 0, and all of its blobs are not in the .caffemodel",
        ),
        (START + one("ReLU", bottom="z"), "ReLU x, line 3: its bottom 'z' is the top of no layer before"),
        (START + one("Softmax", "softmax_param { axis: 7 }"), "Softmax x, line 3: "),
        (
            START + one("Pooling", "pooling_param { pool: STOCHASTIC }"),
            "pool: STOCHASTIC (line 3) should be one of MAX, AVE, 0, 1",
        ),
        (
            START + one("Pooling", 'top: "z" pooling_param { pool: AVE kernel_size: 2 }'),
            "it has 2 tops, and 1 are supported",
        ),
        (
            START + one("LSTM", "recurrent_param { num_output: 2 }"),
            "it has 1 bottoms, data: f32[1, 3, 8, 8]\n  hint: they are a sequence, its cont",
        ),
        (
            START + one("ArgMax", "argmax_param { axis: 1 top_k: 4 }"),
            "top_k: 4 is more than data: f32[1, 3, 8, 8] has along",
        ),
        (
            START + one("DummyData", 'dummy_data_param { shape { dim: 1 } data_filler { type: "xavier" } }'),
            "its data_filler draws numbers, of the type xavier\n  hint: give the deployed network",
        ),
        (START + one("SPP", "spp_param { pyramid_height: 5 }"), "is too small for its pyramid_height"),
        (START + one("Im2col", "convolution_param { kernel_size: 9 }"), "its windows are larger than data"),
        (
            START + 'layers { name: "c" type: CONVOLUTION }',
            "format of 2014, with 1 fields `layers` from line 3 on: c\n  hint: rewrite",
        ),
        ('name: "n"\n' + CONV % "", "a.prototxt: the network has no input"),
        ('name: "n"\ninput: "data"\n' + CONV % "", "the network has 1 inputs, and shapes for 0"),
        (START + "layer { name: ?", "a.prototxt, line 3: this can't be read: '?'"),
        (START + "layer { name: ", "a.prototxt, line 3: a value is expected, not 'the end of the text'"),
        (START + "layer { name }", "name has no value before '}'"),
        (START + "layer {" * 40, "messages are more than 32 deep at '{'"),
    ],
)
def test_refused(text: str, message: str, tmp_path: Path) -> None:
    assert message in said(network(tmp_path, text))


def test_files(tmp_path: Path) -> None:
    path = network(tmp_path, START + CONV % "")
    weights = tmp_path / "a.caffemodel"
    assert files_of(path) == [path, weights]
    assert [n.op for n in to_graph((str(path), weights)).nodes] == ["conv2d"]
    assert "has a network's weights alone\n  hint: give its .prototxt" in said(weights)
    assert "bytes are one" in said(path.read_bytes())
    weights.unlink()
    assert f"there is no a.caffemodel beside {path}, for its weights\n  hint: call it so" in said(path)


def test_preparation_of_images_is_kept_and_layers_of_training_are_left_out(tmp_path: Path) -> None:
    data = one(
        "MemoryData",
        "transform_param { scale: 0.5 mean_value: 104 mean_value: 117 } memory_data_param "
        "{ batch_size: 2 channels: 3 height: 4 width: 5 }",
    ).replace('bottom: "data"', "")
    training = one("Data", "include { phase: TRAIN }") + one("SoftmaxWithLoss", "exclude { phase: TEST }", "y")
    graph = to_graph(
        network(tmp_path, 'name: "n"\n' + data + training + one("ReLU", bottom="y").replace('"y" }', '"z" }'))
    )
    assert graph.metadata.custom_metadata_map == {
        "transform_param.scale": "0.5",
        "transform_param.mean_value": "104, 117",
    }
    assert (graph.metadata.producer_name, graph.metadata.graph_name) == ("caffe", "n")
    assert [v.static_shape for v in graph.inputs] == [(2, 3, 4, 5)]
    assert to_graph(tmp_path / "a.prototxt", {"y": (1, 3, 9, 9)}).inputs[0].static_shape == (1, 3, 9, 9)


MARKS = [b"-", b"99999", b"{", b"}", b":", b"[", b"0", b"\xff", b"1e400", b"nan", b"#", b'"']


def _damage(random_: random.Random, data: bytes) -> bytes:
    return damaged(random_, data, MARKS) or b"name:"


def _damaged_files(folder: Path, seeds: range) -> int:
    """Imports damaged copies of networks, one a seed; returns how many were refused. Only Weft's errors are let through."""
    kept, refused = dict[str, tuple[bytes, bytes]](), 0
    for name, layers in NETWORKS.items():
        path, _ = write(layers, folder, image_of(layers))
        kept[name] = path.read_bytes(), path.with_suffix(".caffemodel").read_bytes()
    frontend = frontend_of(path)
    for seed in seeds:
        random_ = random.Random(seed)
        text, weights = kept[random_.choice(list(kept))]
        if random_.random() < 0.6:
            text = _damage(random_, text)
        else:
            weights = _damage(random_, weights)
        try:
            frontend.to_graph(network(folder, text.decode("latin-1"), weights))
        except weft.WeftError:
            refused += 1
    return refused


def test_damaged_networks_end_in_errors_of_weft(tmp_path: Path) -> None:
    assert _damaged_files(tmp_path, range(300)) > 150


@pytest.mark.slow
def test_many_damaged_networks(tmp_path: Path) -> None:
    assert _damaged_files(tmp_path, range(1000, 11_000)) > 5000


def test_arrays_are_views_of_the_file(tmp_path: Path) -> None:
    graph = to_graph(network(tmp_path, START + CONV % ""))
    held: list[Array] = [c.array for c in graph.constants()]
    assert len(held) == 2
    assert not any(a.flags.owndata or a.flags.writeable for a in held)


def test_a_blob_of_nothing_whatever_its_sizes(tmp_path: Path) -> None:
    """Sizes whose product is 0 but whose others NumPy can't count."""
    blob = field(7, field(1, number(0) + number(1 << 62) + number(1 << 62)))
    weights = weights_of_blobs(blob)
    assert "c" in said(network(tmp_path, START + CONV % "", weights))


@pytest.mark.parametrize(("kind", "dtype"), [(0, "<f8"), (1, "<f4"), (2, "<f2")])
def test_blobs_of_bytes(kind: int, dtype: str, tmp_path: Path) -> None:
    """NVIDIA's Caffe, and OpenCV's tool that shrinks networks, store elements as bytes, with a number for their type."""
    values = [np.linspace(-2, 2, 6).reshape(2, 3, 1, 1).astype(dtype), np.array([0.5, 3], dtype)]
    blobs = [
        field(7, field(1, b"".join(map(number, v.shape)))) + number(10 << 3) + number(kind) + field(12, v.tobytes())
        for v in values
    ]
    graph = to_graph(network(tmp_path, START + CONV % "", weights_of_blobs(*blobs)))
    for c, wanted in zip(graph.constants(), values, strict=True):
        np.testing.assert_array_equal(c.array, wanted.astype(np.float32))


def test_blobs_of_bytes_that_are_no_floats(tmp_path: Path) -> None:
    blob = field(7, field(1, number(1))) + number(10 << 3) + number(3) + field(12, bytes(4))
    told = said(network(tmp_path, START + CONV % "", weights_of_blobs(blob)))
    assert "has elements of type 3, no floats" in told
    cut = field(7, field(1, number(1))) + number(10 << 3) + number(2) + field(12, bytes(3))
    assert "is damaged" in said(network(tmp_path, START + CONV % "", weights_of_blobs(cut)))

"""Files made to ask for memory: what is read of them takes a few times their bytes; texts are bounded before they are parsed."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.frontends.coreml.messages import message
from tests.frontends.mxnet.saved import chain, save
from tests.frontends.tensorflow.written import field, graph, integers, node

import weft
from weft.frontends.caffe.text_format import parse_message
from weft.frontends.dispatch import frontend_of, to_graph
from weft.frontends.protobuf_message import Message
from weft.frontends.wire_format import Malformed


def peak_of(work: Callable[[], object]) -> int:
    """Returns the bytes that *work* holds at most."""
    tracemalloc.start()
    try:
        held = work()
        del held
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("each", [b"\x0a\x00", b"\x08\x01", b"\x0d\0\0\0\0"])
def test_fields_of_a_number_take_a_few_times_their_bytes(each: bytes) -> None:
    data = memoryview(each * 10_000)
    assert peak_of(lambda: Message(data)) < 8 * len(data)
    packed = memoryview(b"\x0a\x80\x80\x01" + b"\x01" * (1 << 14))
    assert peak_of(lambda: Message(packed).integers(1)) < 16 * len(packed)


def test_messages_have_few_kinds_of_fields_and_not_millions_of_parts() -> None:
    assert len(Message(memoryview(b"".join(field(n, 1) for n in range(1, 1025)))).field_numbers) == 1024
    with pytest.raises(Malformed):
        Message(memoryview(b"".join(field(n, 1) for n in range(1, 1026))))
    with pytest.raises(Malformed):
        next(Message(memoryview(b"\x0a\x00" * ((1 << 18) + 1))).messages(1))


def test_a_caffe_text_of_scalars_alone(tmp_path: Path) -> None:
    numbers = b"x: [" + b"1," * 20_000 + b"1]"
    assert peak_of(lambda: parse_message(numbers, "a")) < 100 * len(numbers)
    (tmp_path / "a.prototxt").write_bytes(b"input: 'data'\n" + b"a: 1\n" * (1 << 20))
    (tmp_path / "a.caffemodel").write_bytes(b"\x0a\x01n")
    with pytest.raises(weft.ModelError, match="text has 5242894 bytes; 4194304 are the most"):
        to_graph(tmp_path / "a.prototxt")


def test_an_mxnet_symbol_and_a_darknet_text_have_a_size(tmp_path: Path) -> None:
    path = save(tmp_path, chain(("Flatten", {"a": "b" * (1 << 24)}, ())), {})
    with pytest.raises(weft.ModelError, match="16777216 are the most"):
        to_graph(path)
    (tmp_path / "a.cfg").write_bytes(b"[net]\n" + b"a=1\n" * (1 << 20))
    (tmp_path / "a.weights").write_bytes(b"")
    with pytest.raises(weft.ModelError, match="4194304 are the most"):
        to_graph(tmp_path / "a.cfg")


def test_keras_configurations_have_a_size() -> None:
    pytest.importorskip("h5py")

    def archive(config: str, method: int) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", method) as held:
            held.writestr("config.json", config)
            held.writestr("model.weights.h5", b"")
        return made.getvalue()

    many = json.dumps({"a": [[]] * (1 << 22)})
    with pytest.raises(weft.ModelError, match="16777222 bytes; 16777216 are the most"):
        to_graph(archive(many.ljust((1 << 24) + 6)[: (1 << 24) + 6], zipfile.ZIP_STORED))
    with pytest.raises(weft.ModelError, match="members far larger than that"):
        to_graph(archive(many, zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize("count", [0, -1, 1 << 30])
def test_pieces_of_a_tensor_are_counted_first(tmp_path: Path, count: int) -> None:
    path = save(tmp_path, chain(("SliceChannel", {"num_outputs": str(count)}, ())), {})
    with pytest.raises(weft.ModelError, match=f"into {count} pieces; 1 to 65536 are supported"):
        to_graph(path, {"data": (2, 4)})


@pytest.mark.parametrize(
    "known",
    [
        message((1, "v1"), (4, "serve"), (5, "2.21.0")),
        message((1, "v1"), (2, message((1, message((1, "Relu")))))),
        message((1, "v1"), (3, message((1, "type.googleapis.com/a")))),
        message((2, message((1, message((1, "Relu")))))),
        message((1, "v1"), (7, 1)),
    ],
)
def test_saved_models_are_not_core_mls(known: bytes) -> None:
    """Both begin with version 1 and a message, of which the first field is one that may have a text first."""
    saved = message((1, 1), (2, message((1, known), (2, graph(node("y", "NoOp"))))))
    assert "tensorflow" in type(frontend_of(saved)).__module__


@pytest.mark.parametrize(
    "rest", [((3, message((1, b""))),), ((2, "in words"), (3, message((5, message((1, b"\3")))))), ()]
)
def test_features_are_not_graphs(rest: tuple[tuple[int, str | bytes], ...]) -> None:
    model = message((1, 1), (2, message((1, message((1, "x"), *rest)), (10, message((1, "y"))))), (500, b""))
    assert "coreml" in type(frontend_of(model)).__module__


@pytest.mark.parametrize(
    "moved",
    [
        [node("by", "Const", dtype="type:int32", value=integers([5], [1])), node("y", "Roll", "x", "by", "axis")],
        [
            node("by", "Const", dtype="type:int32", value=integers([1, 2], [1, 2])),
            node("y", "MirrorPad", "x", "by", mode="SYMMETRIC"),
        ],
    ],
)
def test_a_large_dimension_is_moved_without_a_table_of_it(moved: list[bytes]) -> None:
    axis = node("axis", "Const", dtype="type:int32", value=integers([0], [1]))
    model = graph(node("x", "Placeholder", dtype="type:float", shape=(1 << 30,)), axis, *moved)
    assert peak_of(lambda: to_graph(model)) < 1 << 22


def test_crops_have_a_size() -> None:
    given = [node(n, "Placeholder", dtype="type:float", shape=s) for n, s in (("x", (1, 4, 4, 1)), ("boxes", (1, 4)))]
    sizes = node("size", "Const", dtype="type:int32", value=integers([1 << 30, 4], [2]))
    images = node("images", "Const", dtype="type:int32", value=integers([0], [1]))
    with pytest.raises(weft.ModelError, match="crops of"):
        to_graph(graph(*given, images, sizes, node("y", "CropAndResize", "x", "boxes", "images", "size")))

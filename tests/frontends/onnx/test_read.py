"""What the reader says about files that are no complete model, and that weights are views of what was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, external_data_helper
from tests.frontends.onnx.nodes import check_like_runtime, float_inputs, floats, model_of, node

from weft.frontends.onnx.file.read import files_of
from weft.frontends.onnx.importer import from_onnx
from weft.graph import Constant
from weft.support.errors import ModelError


def linear() -> ModelProto:
    """A matrix product with a weight of 48 numbers and a bias of 8."""
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b")]
    return model_of(nodes, float_inputs(x=("n", 6)), weights={"w": floats(6, 8), "b": floats(8, seed=1)})


def message(model: object) -> str:
    with pytest.raises(ModelError) as caught:
        from_onnx(model)  # type: ignore[arg-type]
    return str(caught.value)


def external(tmp_path: Path, location: str = "weights.bin") -> Path:
    """Saves `linear()` with its weights in a file of their own."""
    model = linear()
    external_data_helper.convert_model_to_external_data(
        model, all_tensors_to_one_file=True, location=location, size_threshold=0
    )
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def rewrite(path: Path, change: Callable[[TensorProto], None]) -> None:
    model = onnx.load(path, load_external_data=False)
    change(model.graph.initializer[0])
    path.write_bytes(model.SerializeToString())


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "no.onnx"
    assert message(path) == f"there is no file {path}\n  hint: the current folder is {Path.cwd()}"


def test_folder(tmp_path: Path) -> None:
    assert message(str(tmp_path)) == (
        f"{tmp_path} is a folder, not a model\n"
        "  hint: give the path of a file in it; folders that are models have a Manifest.json or a saved_model.pb"
    )


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"PK\x03\x04 a zip archive", "'PK\\x03\\x04 a zip archi'"),
        (b"\x89PNG\r\n\x1a\n1234567890", "'?PNG\\r\\n\\x1a\\n12345678'"),
    ],
)
def test_not_a_model(tmp_path: Path, content: bytes, start: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert message(path) == (
        f"{path} is not an ONNX model; it begins with {start}\n"
        "  hint: Weft reads ONNX files (.onnx); export the model with torch.onnx.export, tf2onnx or the like"
    )


def test_empty_file() -> None:
    assert message(b"") == "the model given as bytes is empty\n  hint: download or export it again"


def test_git_lfs_pointer() -> None:
    assert message(b"version https://git-lfs.github.com/spec/v1\noid sha256:1234\nsize 5\n") == (
        "the model given as bytes is a Git LFS pointer, not the model itself\n  hint: run `git lfs pull`"
    )


def test_every_truncation_is_noticed() -> None:
    data = linear().SerializeToString()
    for size in range(1, len(data)):
        assert "the model given as bytes" in message(data[:size])


def test_truncated_file(tmp_path: Path) -> None:
    data = linear().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data[:100])
    wanted = f"{path} is cut short: it has 100 bytes, and at least "
    assert message(path).startswith(wanted)
    assert message(path).endswith(" more should follow\n  hint: download or export it again")


@pytest.mark.parametrize("size", [0, 1, 50, 200])
def test_files_of_a_damaged_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(linear().SerializeToString()[:size])
    with pytest.raises(ModelError, match=r"model\.onnx"):
        files_of(path)


def test_no_graph() -> None:
    model = linear()
    model.ClearField("graph")
    assert message(model) == (
        "the model holds no graph\n  hint: the file may be cut short: download or export it again"
    )


def test_no_opset() -> None:
    model = linear()
    del model.opset_import[:]
    assert message(model) == (
        "the model does not say which operator set it uses (it has no opset_import)\n"
        "  hint: the file may be cut short: download or export it again"
    )


def test_newer_ir_version_is_a_warning() -> None:
    model = linear()
    model.ir_version = 99
    with pytest.warns(UserWarning, match="the model has IR version 99, newer than"):
        assert len(from_onnx(model).nodes) == 2


def test_weights_are_views_of_the_file() -> None:
    w = floats(64, 64)
    data = model_of([node("MatMul", "x w")], float_inputs(x=(1, 64)), weights={"w": w}).SerializeToString()
    constant = from_onnx(data).nodes[0].inputs[1]
    assert isinstance(constant, Constant)
    assert np.array_equal(constant.array, w)
    assert not constant.array.flags.owndata
    assert not constant.array.flags.writeable


def test_weight_of_the_wrong_size() -> None:
    model = linear()
    model.graph.initializer[0].raw_data = b"1234"
    assert message(model) == (
        "tensor w: its shape (6, 8) of f32 takes 192 bytes, but it has 4\n"
        "  hint: the file is damaged: export or download it again"
    )


def test_numbers_that_do_not_fill_the_shape() -> None:
    model = linear()
    b = model.graph.initializer[1]
    b.ClearField("raw_data")
    b.float_data.extend([1.0] * 7)
    assert message(model) == (
        "tensor b: its shape (8,) of f32 takes 8 numbers, but it has 7\n"
        "  hint: the file is damaged: export or download it again"
    )


def test_negative_sizes_of_a_weight() -> None:
    model = linear()
    model.graph.initializer[0].dims[:] = [-6, -8]
    assert message(model) == (
        "tensor w: it is of shape (-6, -8)\n  hint: the file is damaged: export or download it again"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"MatMul", b"Mat\xddul", "graph.node[0].op_type is not text in UTF-8: b'Mat\\xddul'"),
        (b"test", b"t\xffst", "graph.name is not text in UTF-8: b't\\xffst'"),
        (b"input_x", b"input\xc3x", "graph.input[0].name is not text in UTF-8: b'input\\xc3x'"),
        (
            b"size_n",
            b"size\xc3n",
            "graph.input[0].type.tensor_type.shape.dim[0].dim_param is not text in UTF-8: b'size\\xc3n'",
        ),
    ],
)
def test_names_that_are_no_text(old: bytes, new: bytes, said: str) -> None:
    nodes = [node("MatMul", "input_x w", "m"), node("Add", "m b")]
    weights = {"w": floats(6, 8), "b": floats(8)}
    model = model_of(nodes, {"input_x": (TensorProto.FLOAT, ("size_n", 6))}, weights=weights)
    data = model.SerializeToString()
    assert old in data
    assert message(data.replace(old, new)) == (
        f"the model given as bytes: {said}\n  hint: the file is damaged: export or download it again"
    )


def test_comments_may_be_in_any_encoding() -> None:
    model = linear()
    model.doc_string = model.graph.doc_string = model.graph.node[0].doc_string = "caf?"
    graph = from_onnx(model.SerializeToString().replace(b"caf?", b"caf\xe9"))
    assert (graph.metadata.description, graph.metadata.graph_description) == ("caf\ufffd", "caf\ufffd")


def test_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    from_file = {c.name: c.array for c in from_onnx(path).constants()}
    in_memory = {c.name: c.array for c in from_onnx(linear()).constants()}
    assert from_file.keys() == in_memory.keys()
    assert all(np.array_equal(from_file[k], in_memory[k]) for k in from_file)
    assert files_of(path) == [path, tmp_path / "weights.bin"]


def test_missing_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "weights.bin").unlink()
    assert message(path) == (
        f"tensor w: its data is in weights.bin, which is not in {tmp_path}\n"
        "  hint: put that file beside the model; an .onnx file with external data is not complete alone"
    )


def test_short_external_data(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "weights.bin").write_bytes(bytes(100))
    assert message(path) == (
        f"tensor w: its data in {tmp_path / 'weights.bin'} ends after 100 of 192 bytes\n"
        "  hint: the file is cut short: download or export it again"
    )


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", ""])
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    path = external(tmp_path)

    def move(t: TensorProto) -> None:
        next(e for e in t.external_data if e.key == "location").value = location

    rewrite(path, move)
    assert message(path) == (
        f"tensor w: its data is said to be in {location!r}, which is not below the model's folder {tmp_path}\n"
        "  hint: external data must lie beside the model; do not load a model that you do not trust"
    )


def test_external_data_of_a_model_without_a_path(tmp_path: Path) -> None:
    data = external(tmp_path).read_bytes()
    assert message(data) == (
        "tensor w: its data is in another file, 'weights.bin', but the model was not given as a path\n"
        "  hint: pass the path of the .onnx file, so that the files beside it can be found"
    )


def test_element_type_that_weft_lacks() -> None:
    model = model_of([node("Identity", "x")], {"x": (TensorProto.COMPLEX64, (2,))})
    assert message(model) == (
        "input x: elements of type COMPLEX64 are not supported\n  hint: the element types are "
        "f32, f64, f16, bf16, bool, i8, i16, i32, i64, u8, u16, u32, u64, "
        "f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu, f4e2m1fn, int4, uint4, int2, uint2"
    )


def test_weights_in_typed_fields_and_unaligned_bytes() -> None:
    model = linear()
    w = model.graph.initializer[0]
    values = np.frombuffer(w.raw_data, np.float32)
    w.ClearField("raw_data")
    w.float_data.extend(values.tolist())
    check_like_runtime(model, {"x": floats(2, 6)})

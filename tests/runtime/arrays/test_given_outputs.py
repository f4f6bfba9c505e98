"""Outputs written where the caller wants them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import WEIGHTS, add, affine, copy2, package, rows

from weft.runtime import Model, TensorSpec
from weft.runtime.session_values import empty
from weft.support.dtypes import bf16, f32
from weft.support.errors import InputError

F32 = np.dtype(np.float32)


def prefix(flat: FlatImage) -> Model:
    return Model(package(flat, "prefix", [TensorSpec("x", f32, ("N",))], [TensorSpec("y", f32, ("N",))]))


def test_aligned_memory_is_written_in_place(flat: FlatImage) -> None:
    model, x = affine(flat), rows(50)
    y, total = empty((50, 4), F32), empty((), F32)
    made = model.run([x], [y, total])
    assert made[0] is y
    assert made[1] is total
    np.testing.assert_array_equal(y, x * WEIGHTS)
    np.testing.assert_array_equal(total, model(x)[1])


def test_only_some_outputs_are_given(flat: FlatImage) -> None:
    y = empty((50, 4), F32)
    made = affine(flat).run([rows(50)], [y, None])
    assert made[0] is y
    np.testing.assert_array_equal(made[1], affine(flat)(rows(50))[1])


@pytest.mark.parametrize("offset", [4, 16, 32])
def test_unaligned_memory_is_copied_to(flat: FlatImage, offset: int) -> None:
    """The model itself fails for an output that is not aligned."""
    x = np.arange(100, dtype=np.float32)
    y = empty((1024,), np.dtype(np.uint8))[offset : offset + 400].view(np.float32)
    assert prefix(flat).run([x], [y])[0] is y
    np.testing.assert_array_equal(y, np.cumsum(x))


@pytest.mark.parametrize("shift", [0, 16, -16])
def test_an_output_may_overlap_an_input(flat: FlatImage, shift: int) -> None:
    """The model reads its input to the end for every element it writes."""
    memory = empty((164,), F32)
    memory[:] = np.arange(164)
    x, y = memory[32:132], memory[32 + shift : 132 + shift]
    want = np.cumsum(x)
    prefix(flat).run([x], [y])
    np.testing.assert_array_equal(y, want)


def test_a_result_is_an_input_of_the_next_call(flat: FlatImage) -> None:
    model = Model(
        package(
            flat, "add", [TensorSpec("a", f32, ("N",)), TensorSpec("b", f32, ("N",))], [TensorSpec("s", f32, ("N",))]
        )
    )
    y = empty((3,), F32)
    a = np.arange(3, dtype=np.float32)
    model.run([a, a], [y])
    model.run([y, y], [y])
    np.testing.assert_array_equal(y, 4 * a)


def test_strided_memory_is_copied_to(flat: FlatImage) -> None:
    wide = np.zeros((50, 8), np.float32)
    affine(flat).run([rows(50)], [wide[:, ::2], None])
    np.testing.assert_array_equal(wide[:, ::2], rows(50) * WEIGHTS)
    assert not wide[:, 1::2].any()


def test_bfloat16(flat: FlatImage) -> None:
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    y = np.zeros(5, ml_dtypes.bfloat16)
    assert copy2(flat, bf16).run([x], [y])[0] is y
    assert y.tobytes() == x.tobytes()


def test_torch_tensors_are_written(flat: FlatImage) -> None:
    torch = pytest.importorskip("torch")
    y = torch.zeros(50, 4)
    affine(flat).run([torch.from_numpy(rows(50))], [y, None])
    np.testing.assert_array_equal(y.numpy(), rows(50) * WEIGHTS)


def message(model: Model, inputs: list[object], out: list[object]) -> str:
    with pytest.raises(InputError) as caught:
        model.run(inputs, out)
    return str(caught.value)


def test_messages(flat: FlatImage) -> None:
    model, x = affine(flat), rows(3)
    y = np.zeros((3, 4), np.float32)
    assert message(model, [x], [y]) == (
        "out has 1 arrays, and the model has 2 outputs\n"
        "  hint: give an array, or None for a new one, for each of (y: f32[N, 4], total: f32[])"
    )
    assert message(model, [x], [y.astype(np.float64), None]).startswith(
        "the array given for the output y: f32[N, 4] is float64[3, 4]"
    )
    assert "the array given for the output y: f32[N, 4] is float32[12]" in message(model, [x], [y.ravel(), None])
    wrong_shape = (
        "the array given for the output 'y' has shape (4, 4), not (3, 4)\n"
        "  hint: the shape follows from those of the inputs"
    )
    assert message(model, [x], [np.zeros((4, 4), np.float32), None]) == wrong_shape
    assert message(model, [x], [np.zeros((4, 8), np.float32)[:, ::2], None]) == wrong_shape
    y.flags.writeable = False
    assert "the array given for the output 'y' is read-only" in message(model, [x], [y, None])
    assert "the output 'y' cannot be written into a list" in message(model, [x], [[1.0], None])
    assert "input 'x' has dtype float64" in message(model, [x.astype(np.float64)], [None, None])


def test_wrong_inputs_are_named_with_outputs_too(flat: FlatImage) -> None:
    a = np.zeros(3, np.float32)
    assert "input 'b' has shape (2,)" in message(add(flat), [a, a[:2]], [np.zeros(3, np.float32)])

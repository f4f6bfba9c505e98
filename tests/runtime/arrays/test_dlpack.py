"""Arrays of other libraries, in and out, over the same memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import WEIGHTS, add, affine, copy2, rows

from weft.runtime import TensorSpec
from weft.runtime.arrays import as_array
from weft.support.dtypes import bf16, f32
from weft.support.errors import InputError

SPEC = TensorSpec("x", f32, ("N", 4))


class Exporter:
    """An array of some library that speaks the present protocol."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        return self.array.__dlpack__(max_version=max_version)


class OldExporter:
    """An array of some library that speaks the protocol of before version 1."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("exporter", [Exporter, OldExporter])
def test_inputs_keep_their_memory(flat: FlatImage, exporter: Any) -> None:
    x = rows(5)
    for view in (x, x[1:], x[::2], x.T, x[:, ::2]):
        found = as_array(exporter(view), SPEC)
        assert address(found) == address(view)
        assert (found.shape, found.strides, found.flags.writeable) == (view.shape, view.strides, False)
    np.testing.assert_array_equal(affine(flat)(exporter(x))[0], x * WEIGHTS)


def test_read_only_arrays_are_taken(flat: FlatImage) -> None:
    x = rows(5)
    x.flags.writeable = False
    assert address(as_array(Exporter(x), SPEC)) == address(x)
    np.testing.assert_array_equal(affine(flat)(Exporter(x))[0], x * WEIGHTS)
    with pytest.raises(InputError, match="input 'x' cannot be read where it is: Cannot export readonly array"):
        affine(flat)(OldExporter(x))


def test_memory_lives_as_long_as_it_is_read() -> None:
    x = rows(100_000)
    want = x.copy()
    found = as_array(Exporter(x), SPEC)
    del x
    np.testing.assert_array_equal(found, want)


def test_outputs_are_exported(flat: FlatImage) -> None:
    y = affine(flat)(rows(5))[0]
    assert y.__dlpack_device__() == (1, 0)
    again = np.from_dlpack(y)
    assert address(again) == address(y)
    del y
    np.testing.assert_array_equal(again, rows(5) * WEIGHTS)
    halves = copy2(flat, bf16)(np.ones(3, ml_dtypes.bfloat16))
    assert isinstance(halves, np.ndarray)
    assert np.from_dlpack(halves.view(np.uint16)).view(ml_dtypes.bfloat16).tolist() == [
        1,
        1,
        1,
    ]  # DLPack of NumPy's lacks it


def test_torch(flat: FlatImage) -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    for view in (x, x[1:], x.T):
        found = as_array(view, SPEC)
        assert (address(found), found.shape) == (view.data_ptr(), tuple(view.shape))
    y = affine(flat)(x)[0]
    back = torch.from_dlpack(y)
    assert back.data_ptr() == address(y)
    assert torch.equal(back, x * torch.from_numpy(WEIGHTS))
    halves = torch.tensor([1.0, -2.5], dtype=torch.bfloat16)
    assert address(as_array(halves, SPEC)) == halves.data_ptr()
    made = copy2(flat, bf16)(halves)
    assert isinstance(made, np.ndarray)
    assert torch.equal(torch.from_dlpack(made.view(np.uint16)).view(torch.bfloat16), halves)
    with pytest.raises(InputError, match=r"give x\.detach\(\)"):
        affine(flat)(x.requires_grad_())


def test_jax(flat: FlatImage) -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.linspace(-1, 1, 8).reshape(2, 4)
    assert address(as_array(x, SPEC)) == x.unsafe_buffer_pointer()
    y = affine(flat)(x)[0]
    back = jax.dlpack.from_dlpack(y)
    assert back.unsafe_buffer_pointer() == address(y)
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x) * WEIGHTS)
    np.testing.assert_array_equal(add(flat)(x[0], np.asarray(x[1])), np.asarray(x[0]) + np.asarray(x[1]))
    halves = jax.numpy.array([1.0, -2.5], dtype="bfloat16")
    made = copy2(flat, bf16)(halves)
    assert isinstance(made, np.ndarray)
    assert made.tolist() == [1.0, -2.5]

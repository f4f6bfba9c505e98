"""Arrays that can't be taken: the hint is an expression of the library that made them, and it works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import affine

from weft.runtime import TensorSpec
from weft.runtime.arrays import as_array, fit_input, fit_output
from weft.support.dtypes import SCALARS, f32
from weft.support.errors import InputError

SPEC = TensorSpec("x", f32, ("N", 4))


def refusal(value: object) -> tuple[str, str]:
    """Returns the message of an input that is refused, and its hint."""
    with pytest.raises(InputError) as caught:
        fit_input(value, SPEC, {})
    return caught.value.message, caught.value.hint or ""


def test_numpy_converts_with_astype() -> None:
    assert refusal(np.zeros((3, 4)))[1].endswith("unseen: x.astype('float32')")


@pytest.mark.parametrize("name", ["f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"])
def test_torch_converts_with_to(name: str) -> None:
    torch = pytest.importorskip("torch")
    wide = torch.ones(3, 4)
    spec = TensorSpec("x", SCALARS[name], (3, 4))
    with pytest.raises(InputError) as caught:
        fit_input(wide, spec, {})
    hint = caught.value.hint or ""
    assert hint == f"convert it yourself, so that nothing is lost unseen: x.to(torch.{spec.dtype.numpy.name})"
    assert fit_input(_follow(hint, wide), spec, {}).dtype == spec.dtype.numpy


def test_classes_of_torch_and_of_others() -> None:
    torch = pytest.importorskip("torch")
    kept = type("Kept", (torch.Tensor,), {"__module__": "elsewhere"})
    wide = torch.ones(3, 4, dtype=torch.float64)
    for tensor in (wide.as_subclass(kept), torch.nn.Parameter(wide, requires_grad=False)):
        assert refusal(tensor)[1].endswith("x.to(torch.float32)")


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize(
    ("state", "hint"),
    [
        (lambda x: x.requires_grad_(), "give x.detach()"),
        (lambda x: x.to_sparse(), "give x.to_dense()"),
        (lambda x: x.to_sparse_csr(), "give x.to_dense()"),
        (lambda x: x.to_mkldnn(), "give x.to_dense()"),
        (lambda x: x.to_sparse().requires_grad_(), "give x.detach().to_dense()"),
    ],
)
def test_torch_tensors_that_can_not_be_exported(state: Any, hint: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensor = state(x.clone())
    message, given = refusal(tensor)
    assert message.startswith("input 'x' cannot be read where it is: Can't export tensors")
    assert given == hint
    np.testing.assert_array_equal(as_array(_follow(hint, tensor), SPEC), x.numpy())


def test_a_tensor_without_values() -> None:
    torch = pytest.importorskip("torch")
    assert refusal(torch.ones(3, 4, device="meta"))[1] == (
        "give a tensor with values: one on the device 'meta' has a shape only"
    )


def test_a_tensor_of_a_type_that_weft_lacks() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.ones(3, 4).to(torch.float8_e4m3fn)
    assert refusal(tensor)[1] == "give a plain tensor, such as x.to(torch.float32)"


def test_negated_tensors_are_not_read_with_the_wrong_sign(flat: FlatImage) -> None:
    torch = pytest.importorskip("torch")
    imaginary = torch.complex(torch.zeros(3, 4), torch.ones(3, 4)).conj().imag
    assert torch.equal(imaginary, -torch.ones(3, 4))
    message, hint = refusal(imaginary)
    assert message == "input 'x' cannot be read where it is: its elements are the negatives of those in memory"
    assert hint == "give x.resolve_neg()"
    np.testing.assert_array_equal(as_array(_follow(hint, imaginary), SPEC), -np.ones((3, 4)))
    with pytest.raises(
        InputError, match="the output 'y' cannot be written into a Tensor: its elements are the negatives"
    ):
        affine(flat).run([np.zeros((3, 4), np.float32)], [imaginary, None])


def test_outputs_are_dense() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="give a NumPy array, or a dense tensor with DLPack"):
        fit_output(torch.ones(3, 4).to_sparse(), SPEC)


class Elsewhere:
    """An array of some library, in the memory of a device."""

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        raise BufferError("the array is in the memory of a GPU")


def test_arrays_of_other_libraries() -> None:
    assert refusal(Elsewhere()) == (
        "input 'x' cannot be read where it is: the array is in the memory of a GPU",
        "give an array in the CPU's memory, such as np.asarray(x)",
    )


def _follow(hint: str, x: object) -> object:
    """Does what a hint says."""
    import torch

    return eval(hint.removeprefix("give ").rpartition(": ")[2], {"torch": torch, "x": x})

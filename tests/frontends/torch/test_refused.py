"""Programs that can't be imported: the messages name the node, and say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import Module, exported, numbers  # noqa: E402

import weft  # noqa: E402
from weft.frontends.dispatch import to_graph  # noqa: E402

nn, F = torch.nn, torch.nn.functional
X, IMAGES = numbers(3, 4), numbers(2, 4, 8, 8)


def said(model: Any) -> str:
    with pytest.raises(weft.ModelError) as told:
        to_graph(model)
    return str(told.value)


def program(function: Callable[..., Any], *inputs: Any) -> Any:
    return exported(Module(function), inputs)


def test_all_unsupported_operators_are_listed() -> None:
    model = program(lambda x: (torch.linalg.det(x @ x.T), torch.fft.fft(x), torch.fft.fft(2 * x)), X)
    with pytest.raises(weft.UnsupportedOperators) as told:
        weft.compile(model)
    assert str(told.value) == (
        "the model uses 3 operators that Weft does not have:\n"
        "  aten.fft_fft.default, 2 nodes: fft_fft, fft_fft_1\n"
        "  aten.linalg_det.default, 1 node: linalg_det\n"
        "  aten.numpy_T.default, 1 node: numpy_t\n"
        "  hint: export the module without these, or decomposed: program.run_decompositions()"
    )


def test_a_module_is_to_be_exported() -> None:
    assert said(nn.Sequential(nn.ReLU())) == (
        "a Sequential is a module of PyTorch's, not an exported program\n"
        "  hint: export it first, with inputs to try: torch.export.export(module.eval(), (x,))"
    )


def test_training() -> None:
    hint = "\n  hint: export the module for inference: module.eval()"
    dropout = program(lambda x: F.dropout(x, training=True), X)
    assert said(dropout) == f"aten.dropout.default dropout: training mode is not supported{hint}"
    norm = torch.export.export(nn.BatchNorm2d(4, track_running_stats=False), (IMAGES,))
    assert said(norm) == f"aten.batch_norm.default batch_norm: training mode is not supported{hint}"


class Counter(nn.Module):  # type: ignore[misc, name-defined]
    """A module with a state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return x + self.count


def test_a_state() -> None:
    assert said(exported(Counter(), [X])) == (
        "the program changes 'count', which Weft keeps constant\n"
        "  hint: export the module for inference: torch.export.export(module.eval(), ...)"
    )


CASES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "an image without a batch": (
        lambda x: F.max_pool2d(x, 2),
        IMAGES[0],
        "aten.max_pool2d.default max_pool2d: its argument 'self' should have 4 dimensions: inputs_0: f32[4, 8, 8]\n"
        "  hint: give the exported module inputs with a batch",
    ),
    "unequal windows": (
        lambda x: F.adaptive_avg_pool2d(x, 3),
        IMAGES,
        "aten.adaptive_avg_pool2d.default adaptive_avg_pool2d: windows of unequal sizes, (3, 3) of inputs_0: f32[2, 4, 8, 8], "
        "are not supported\n  hint: use avg_pool with a kernel",
    ),
    "an indices output": (
        lambda x: F.max_pool2d(x, 2, return_indices=True),
        IMAGES,
        "_operator.getitem getitem_1: this result of an operator is not supported\n  hint: export the module without it",
    ),
    "a type": (
        lambda x: x.to(torch.complex64),
        X,
        "aten.to.dtype to: elements of type torch.complex64 are not supported\n  hint: the element types are f32, f64, f16, "
        "bf16, bool, i8, i16, i32, i64, u8",
    ),
    "a range": (
        lambda x: x[0] + torch.arange(0.0, 2.0, 0.5),
        X,
        "aten.arange.start_step arange: a range from 0.0 to 2.0 by 0.5 is not supported\n"
        "  hint: use whole numbers and a positive step",
    ),
    "grouped queries": (
        lambda x: F.scaled_dot_product_attention(x[:, :4], x[:, :2], x[:, :2], enable_gqa=True),
        IMAGES,
        "aten.scaled_dot_product_attention.default scaled_dot_product_attention: enable_gqa is not supported\n"
        "  hint: repeat the keys and values in the module",
    ),
}


@pytest.mark.parametrize(("function", "x", "message"), CASES.values(), ids=CASES)
def test_messages(function: Callable[..., Any], x: Any, message: str) -> None:
    assert said(program(function, x)) == message


def test_a_number_for_an_input() -> None:
    model = torch.export.export(Module(lambda x, n: x * n), (X, 3))
    assert said(model) == "the input 'inputs_1' is no tensor\n  hint: export the module with tensors for inputs"

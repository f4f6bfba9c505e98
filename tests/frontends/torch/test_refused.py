"""Programs that can't be imported: the messages name the node, and say what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
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
    return re.sub(r" \(\w+\.py:\d+\)", "", str(told.value))


def program(function: Callable[..., Any], *inputs: Any) -> Any:
    return exported(Module(function), inputs)


def test_all_unsupported_operators_are_listed() -> None:
    model = program(lambda x: (torch.special.airy_ai(x), torch.poisson(x), torch.poisson(2 * x)), X)
    with pytest.raises(weft.UnsupportedOperators) as told:
        weft.compile(model)
    text = str(told.value)
    begin = "the model uses 2 operators that Weft does not have:\n  aten.poisson.default, 2 nodes: poisson (modules.py:"
    assert text.startswith(begin)
    assert "\n  aten.special_airy_ai.default, 1 node: special_airy_ai (modules.py:" in text
    assert text.endswith("\n  hint: compute what they compute by others in the module")


def test_a_module_is_to_be_exported() -> None:
    assert said(nn.Sequential(nn.ReLU())) == (
        "a Sequential is a module of PyTorch's, not an exported program\n"
        "  hint: give inputs to try it with: weft.compile(module.eval(), example_inputs=(x,))"
    )


CASES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "curves of bytes": (
        lambda x: F.interpolate(x, (9, 9), mode="bicubic"),
        torch.zeros(1, 2, 5, 5, dtype=torch.uint8),
        "aten.upsample_bicubic2d.vec upsample_bicubic2d: bicubic interpolation of inputs_0: u8[1, 2, 5, 5] is not supported\n"
        "  hint: convert it to float32 in the module",
    ),
    "sums of attention": (
        lambda x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)[1],
        numbers(1, 2, 3, 4),
        "_operator.getitem getitem_1: this result of an operator is not supported\n  hint: export the module without it",
    ),
    "strides out of order": (
        lambda x: x[:, ::2].as_strided((2, 2), (1, 4)),
        X,
        "aten.as_strided.default as_strided: strides in a tensor that is not contiguous are not supported\n"
        "  hint: call contiguous() on it first",
    ),
    "elements before the first": (
        lambda x: x[1:].as_strided((2, 2), (1, 4), 3),
        X,
        "aten.as_strided.default as_strided: elements before the first of a tensor, which is at 4 in memory, are not "
        "supported\n  hint: call contiguous() on it first",
    ),
    "elements behind the last": (
        lambda x: x[:1].as_strided((2, 2), (4, 1)),
        X,
        "aten.as_strided.default as_strided: elements behind the last of slice_1: f32[1, 4] are not supported\n"
        "  hint: take them from the whole tensor",
    ),
    "a type": (
        lambda x: x.to(torch.uint16),
        X,
        "aten.to.dtype to: elements of type torch.uint16 are not supported\n  hint: the element types are f32, f64, f16, "
        "bf16, bool, i8, i16, i32, i64, u8",
    ),
}


@pytest.mark.parametrize(("function", "x", "message"), CASES.values(), ids=CASES)
def test_messages(function: Callable[..., Any], x: Any, message: str) -> None:
    assert said(program(function, x)) == message


class Branches(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x  # a line that PyTorch can't export


class Converts(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        y = x + 1
        return y.to(torch.float8_e4m3fn).float()  # a line of a type


class Changes(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        x.add_(1)  # a line that changes
        return x


LINES: dict[str, Any] = {"PyTorch can't export": Branches, "of a type": Converts, "changes": Changes}


@pytest.mark.parametrize("words", LINES)
def test_errors_tell_the_line_of_the_module(words: str) -> None:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    number = next(k for k, line in enumerate(lines, 1) if re.search(f"# a line .*{words}", line))
    with pytest.raises(weft.ModelError) as told:
        weft.compile(LINES[words]().eval(), example_inputs=(X,))
    assert f"test_refused.py:{number}" in str(told.value)

"""The pipeline with a backend that makes nothing: each step is asked for as often as there are kernels."""

from __future__ import annotations

import pytest
from tests.models import mlp

from weft.codegen.null.backend import BACKEND
from weft.driver.build import build
from weft.driver.function import NativeFunction
from weft.loop import parse_program
from weft.support.errors import ToolchainError
from weft.targets import can_run
from weft.targets.source_targets import NULL


def test_a_model_is_lowered_to_nothing() -> None:
    BACKEND.counts.clear()
    made = build(mlp(batch=2), NULL)
    kernels = len(made.kernels)
    assert kernels > 0
    assert BACKEND.counts == {"passes": kernels, "write": kernels + 1, "compile": kernels + 1, "link": 1}
    assert all(k.flat.startswith("def ") and k.code_bytes == 0 for k in made.kernels.values())
    assert len(made.package.image) == 0
    assert next(iter(made.kernels.values())).assembly(NULL).startswith("def ")


def test_nothing_does_not_run() -> None:
    assert not can_run(NULL)
    with pytest.raises(ToolchainError) as error:
        NativeFunction(parse_program("def f(x: u8[64]):\n    pass\n"), NULL)
    assert str(error.value) == "the null backend makes no code that runs\n  hint: compile for another target"

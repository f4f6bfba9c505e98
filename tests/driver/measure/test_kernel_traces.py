"""Every kernel of a model keeps its loops and the steps that made them, and the steps make the loops again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from tests.models import lstm_step, mlp, tiny_bert_layer, tiny_dcgan, tiny_resnet

import weft
from weft.driver import kernel
from weft.driver.build import Compilation
from weft.driver.cache.code_cache import Cache
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.loop import parse_program, print_function
from weft.lower import serialize_loops
from weft.schedule import Schedule
from weft.targets import Target, host
from weft.te import to_program

MODELS: list[Callable[[], onnx.ModelProto]] = [mlp, tiny_resnet, tiny_dcgan, lstm_step, tiny_bert_layer]


def built(path: Path, cache: Cache) -> Compilation:
    return weft.build(str(path), host(), CompileOptions(), None, cache)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", MODELS, ids=lambda f: str(f.__name__))
def test_the_steps_make_the_loops_again(
    model: Callable[[], onnx.ModelProto], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(model().SerializeToString())
    requests: list[KernelRequest] = []
    original = kernel.make_kernel

    def noting(request: KernelRequest, target: Target, cache: Cache | None, *others: object, **named: object) -> object:
        requests.append(request)
        return original(request, target, cache, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("weft.driver.groups.build_kernels.make_kernel", noting)
    first = built(tmp_path / "model.onnx", Cache(tmp_path / "cache"))
    again = built(tmp_path / "model.onnx", Cache(tmp_path / "cache"))
    assert len({k.name for k in again.kernels.values()}) == len(again.kernels) > 0
    for (key, found), request in zip(
        again.kernels.items(), requests[len(first.kernels) :], strict=True
    ):  # from the cache
        made = first.kernels[key]
        assert (found.scheduled, found.trace, found.flat) == (made.scheduled, made.trace, made.flat)
        assert loops_made_by(found.trace, request) == found.scheduled
        parse_program(found.scheduled)


def loops_made_by(trace: str, request: KernelRequest) -> str:
    """The text of the loops that a trace, run as the script that it is, makes of a kernel's formulas."""
    s = Schedule(to_program(*request.tensors(), request.name, request.sizes))
    exec(trace, {"s": s})
    program = s.program if request.parallel else serialize_loops(s.program)
    return print_function(program.entry)

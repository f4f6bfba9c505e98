"""`weft.compile` and `weft.build`: what they take, what they say, and how little a known model needs."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.models import conv_bn_relu, lstm_step, mlp, random_inputs, tiny_bert_layer
from tests.replay.machines import MACHINES

import weft
from weft.cli.onnx_builder import GraphBuilder, conv
from weft.driver import kernel as kernel_module
from weft.driver.build import build
from weft.driver.cache.code_cache import default_cache
from weft.driver.options import CompileOptions, check_options
from weft.driver.progress import Clock
from weft.frontends import to_graph
from weft.loop import Program
from weft.lower import lower
from weft.support.knobs import Switches
from weft.targets import Target, cpu
from weft.targets.registry import TARGETS


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


def test_all_kinds_of_models_give_the_same(model: Path) -> None:
    x = np.ones((2, 24), np.float32)
    wanted = np.asarray(weft.compile(model)(x))
    for given in (str(model), model.read_bytes(), mlp()):
        assert np.array_equal(np.asarray(weft.compile(given)(x)), wanted)
    assert weft.build(to_graph(mlp())).package.inputs == weft.compile(model).inputs


def test_a_known_model_is_loaded_without_the_compiler(model: Path) -> None:
    weft.compile(model)
    code = (
        "import sys, weft; weft.compile(sys.argv[1]);"
        "print(sorted({'onnx', 'llvmlite', 'weft.graph', 'weft.ir', 'weft.frontends', 'typer', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_threads_may_compile_at_once(count: int) -> None:
    protos = [mlp(seed=n) for n in range(count)]
    x = np.ones((2, 24), np.float32)
    wanted = [np.asarray(weft.compile(p, cache=False)(x)) for p in protos]
    with ThreadPoolExecutor(count) as pool:
        made = list(pool.map(lambda p: np.asarray(weft.compile(p, cache=False)(x)), protos))
    for ours, theirs in zip(made, wanted, strict=True):
        assert np.array_equal(ours, theirs)


def test_sizes_can_be_given(model: Path) -> None:
    assert str(weft.compile(model).inputs[0]) == "x: f32[batch, 24]"
    assert str(weft.compile(model, shapes={"batch": 5}).inputs[0]) == "x: f32[5, 24]"
    assert str(weft.compile(model, shapes={"x": (6, 24)}).inputs[0]) == "x: f32[6, 24]"


def test_progress_is_told_stage_by_stage(model: Path) -> None:
    told: list[tuple[str, int, int]] = []
    weft.compile(model, cache=False, progress=lambda *step: told.append(step))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["read", "optimize", "plan", "kernels", "link"]
    for stage in ("read", "optimize", "plan", "kernels", "link"):
        steps = [(done, total) for s, done, total in told if s == stage]
        assert steps == sorted(steps)
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1] >= 1


def test_progress_is_quiet_for_a_known_model(model: Path) -> None:
    told: list[str] = []
    weft.compile(model)
    weft.compile(model, progress=lambda stage, done, total: told.append(stage))
    assert told == []


def test_the_clock_times_each_stage() -> None:
    clock = Clock()
    clock.begin("one")
    clock.begin("two", 3)
    clock.end()
    clock.end()
    assert list(clock.seconds) == ["one", "two"]


def test_levels_do_what_they_say() -> None:
    proto = conv_bn_relu(stride=2)  # which needs blocks, whatever rows fill
    operators = {
        level: [[n.op for n in g.nodes] for g in build(proto, MACHINES["avx512"], CompileOptions(level)).fused.groups]
        for level in range(4)
    }
    assert operators[0] == [["conv2d"], ["batch_norm"], ["relu"]]
    assert operators[1] == operators[2] == [["conv2d", "relu"]]
    assert operators[3] == [["conv2d_blocked", "relu"], ["unpack_channels"]]
    dense = {level: str(build(mlp(), options=CompileOptions(opt_level=level)).fused) for level in range(4)}
    assert "matmul_packed" not in dense[1]
    assert "matmul_packed" in dense[2]


def test_strict_keeps_the_models_operations() -> None:
    groups = build(conv_bn_relu(), options=CompileOptions(precision="strict")).fused.groups
    assert "batch_norm" in [n.op for g in groups for n in g.nodes]
    g = GraphBuilder("wide")
    g.output(conv(g, g.input("x", (1, 64, 56, 56)), (64, 64)), "y")
    assert "winograd" in str(build(g.model()).fused)
    assert "winograd" not in str(build(g.model(), options=CompileOptions(precision="strict")).fused)


def test_equal_groups_share_a_kernel() -> None:
    made = build(tiny_bert_layer())
    assert len(made.kernels) < len(made.fused.groups)
    assert len({k.name for k in made.kernels.values()}) == len(made.kernels)


def test_models_share_kernels_whatever_number_they_have_in_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))

    def towers(*channels: int) -> onnx.ModelProto:
        g = GraphBuilder(f"towers {channels}")
        for n, c in enumerate(channels):
            g.output(g.op("Tanh", g.input(f"x{n}", (4, c))), f"y{n}")
        return g.model()

    first = weft.build(towers(8, 24), cache=default_cache())
    second = weft.build(towers(40, 24), cache=default_cache())
    assert [k.name for k in second.kernels.values()] == ["tanh", "tanh_2"]
    assert [bool(k.spans) for k in second.kernels.values()] == [True, False]
    third = weft.build(towers(24), cache=default_cache())
    assert [k.name for k in third.kernels.values()] == ["tanh"]
    assert not any(k.spans for k in third.kernels.values())
    wide, narrow = np.ones((4, 40), np.float32), np.full((4, 24), 2, np.float32)
    assert first.kernels.keys() & second.kernels.keys() == third.kernels.keys()
    for result, x in zip(weft.compile(towers(40, 24))(wide, narrow), (wide, narrow), strict=True):
        np.testing.assert_allclose(result, np.tanh(x), rtol=1e-6)


def test_code_for_a_target_that_lacks_nothing_here_says_what_it_needs() -> None:
    package = build(mlp(), cpu("sse4")).package
    assert package.target == "cpu -mattr=sse4"
    assert package.machine == "x86_64"
    assert {"sse4_1", "pni", "lahf_lm"} <= set(package.features)
    assert "avx" not in package.features


def test_verify_checks_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def spy(program: Program, target: Target, switches: Switches, *, verify: bool, **others: Any) -> Program:
        seen.append(verify)
        return lower(program, target, switches, verify=verify, **others)

    weft.build(mlp())
    monkeypatch.setattr(kernel_module, "lower", spy)
    weft.compile(mlp(), verify=True)
    assert seen
    assert all(seen)


def test_a_kernels_texts_survive_the_cache(model: Path) -> None:
    first = weft.build(model, cache=default_cache())
    again = weft.build(model, cache=default_cache())
    for a, b in zip(first.kernels.values(), again.kernels.values(), strict=True):
        assert (a.name, a.scheduled, a.trace, a.flat, a.module) == (b.name, b.scheduled, b.trace, b.flat, b.module)
        assert a.symbol in a.assembly(first.target)


def test_a_kernels_texts_are_printed_for_whoever_reads_them() -> None:
    kernel = next(iter(weft.build(mlp()).kernels.values()))
    texts = {"scheduled", "trace", "flat"}
    assert not texts & set(vars(kernel))
    assert kernel.scheduled.startswith("def ") or kernel.scheduled.startswith("@function")
    assert texts & set(vars(kernel)) == {"scheduled"}


def test_kernels_show_functions_by_name_and_their_code(model: Path) -> None:
    made = weft.build(lstm_step())
    texts = "".join(k.flat for k in made.kernels.values())
    assert "tanh(" in texts
    for kernel in made.kernels.values():
        assert f"{kernel.symbol}:" in kernel.assembly(made.target)


def test_options_are_checked() -> None:
    assert check_options() == CompileOptions(3, "model", verify=False)
    for arguments, message in [
        ({"opt_level": 4}, "opt_level is 4\n  hint: use 0, 1, 2 or 3"),
        ({"opt_level": "3"}, "opt_level is '3'\n  hint: use 0, 1, 2 or 3"),
        ({"precision": "fp16"}, 'precision is \'fp16\'\n  hint: use "model", "strict", "bf16" or "tf32"'),
        ({"threads": 0}, "threads is 0\n  hint: use 1 or more, or None for all processors"),
        (
            {"target": "gpu"},
            f"there is no target 'gpu'\n  hint: {TARGETS}",
        ),
    ]:
        with pytest.raises(weft.InputError) as told:
            weft.compile(mlp(), **arguments)  # type: ignore[arg-type]
        assert str(told.value) == message


def test_code_for_another_processor_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.driver.check_target.can_run", lambda target: False)
    with pytest.raises(weft.InputError) as told:
        weft.compile(mlp(), target="cpu -mattr=avx512")
    assert str(told.value) == (
        "code for 'cpu -mattr=avx512' does not run on this machine\n  hint: use `weft compile MODEL -o FILE`"
    )


def test_constants_are_computed_here_when_the_code_is_for_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.driver.evaluate.can_run", lambda target: False)
    monkeypatch.setattr("weft.driver.evaluate.host", lambda: cpu("sse4"))
    folded = build(mlp(), cpu("avx2")).package
    assert "avx2" in folded.features


def test_results_are_the_same_with_and_without_the_cache(model: Path) -> None:
    inputs = random_inputs(mlp())
    cold, warm = weft.compile(model, cache=False), [weft.compile(model) for _ in range(2)]
    for m in warm:
        assert np.array_equal(np.asarray(m(**inputs)), np.asarray(cold(**inputs)))

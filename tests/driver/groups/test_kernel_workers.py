"""Kernels that other processes make: the same as here, whatever becomes of the processes."""

from __future__ import annotations

import os
import pickle
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.driver.tuned import plan_of, tune

import weft
from weft.cli.onnx_builder import GraphBuilder
from weft.cost import parse_plan
from weft.driver import build as building
from weft.driver.build import build
from weft.driver.cache.code_cache import Cache
from weft.driver.groups import kernel_workers as workers_module
from weft.driver.groups.kernel_jobs import job_of
from weft.driver.groups.kernel_worker import answer
from weft.driver.groups.kernel_workers import PROCESSES, KernelWorkers, kernel_workers, worker_count
from weft.driver.kernel import Kernel, make_kernel
from weft.driver.kernel_request import KernelRequest, Tensors
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.graph import Graph
from weft.loop import canonical_text, parse_program
from weft.native import _rt
from weft.support.errors import InputError, LoweringError
from weft.targets import Target, host
from weft.te import compute, placeholder

WIDTHS = [8, 12, 16, 20, 24, 28, 32]


def network(widths: list[int] = WIDTHS) -> Graph:
    """Returns the graph of `products`."""
    return to_graph(products(widths))


def products(widths: list[int] = WIDTHS) -> onnx.ModelProto:
    """Returns products of different widths, one after another, so that each is a kernel of its own."""
    g = GraphBuilder("widths")
    made = g.input("x", [4, widths[0]])
    for n, m in pairwise(widths):
        made = g.op("Softmax", g.op("MatMul", made, g.normal((n, m), 0.3)))
    g.output(made, "y")
    return g.model()


@contextmanager
def ready(count: int) -> Iterator[KernelWorkers]:
    """Has processes that have started."""
    with kernel_workers(count) as workers:
        assert workers is not None
        until = time.monotonic() + 60
        while workers.ready < count and time.monotonic() < until:
            time.sleep(0.01)
        assert workers.ready == count
        yield workers


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelWorkers]:
    """A process that compilations use, and that is asked for every kernel."""
    monkeypatch.setattr(workers_module, "AHEAD", 1000)
    with ready(1) as workers:

        @contextmanager
        def given(count: int) -> Iterator[KernelWorkers]:
            yield workers

        monkeypatch.setattr(building, "kernel_workers", given)
        yield workers


def test_kernels_are_the_same_as_of_this_process(one: KernelWorkers) -> None:
    made = build(network())
    others = {s.thread for k in made.kernels.values() for s in k.spans if s.name == "schedule"}
    assert one.pids[0] in others
    one.close()
    alone = build(network())
    assert len(alone.kernels) == len(made.kernels) > 6
    for key, k in alone.kernels.items():
        other = made.kernels[key]
        assert (k.name, k.module, k.workspaces) == (other.name, other.module, other.workspaces)
        assert canonical(k) == canonical(other)  # loops of one name are numbered in the text that a process reads


def canonical(kernel: Kernel) -> tuple[str, str]:
    """Returns the forms of a kernel, of which names are no part."""
    return canonical_text(parse_program(kernel.scheduled)), canonical_text(parse_program(kernel.flat))


def test_a_model_computes_the_same_by_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is waited for: a process that is not there yet gets nothing to do."""
    g, x = network(), np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    expected = np.asarray(weft.compile(g, cache=False)(x))
    monkeypatch.setenv(PROCESSES, "3")
    monkeypatch.setattr(_rt, "cpus", lambda: 4)
    monkeypatch.setattr(workers_module, "CALLS", 4)
    assert worker_count(g) == 2
    np.testing.assert_array_equal(np.asarray(weft.compile(g, cache=False)(x)), expected)


def test_kernels_are_kept_in_the_cache(one: KernelWorkers, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    made = build(network(), cache=cache)
    again = build(network(), cache=cache)
    assert again.cached == len(again.kernels)
    assert {k.name: k.module for k in made.kernels.values()} == {k.name: k.module for k in again.kernels.values()}


def test_a_process_that_dies_is_done_without(one: KernelWorkers) -> None:
    os.kill(one.pids[0], 9)
    assert len(build(network()).kernels) > 6
    assert one.ready == 0


def test_processes_end_at_once() -> None:
    with ready(2) as workers:
        pids = workers.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_system_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise PermissionError

    monkeypatch.setattr(workers_module, "WorkerProcess", refuse)
    monkeypatch.setattr(building, "worker_count", lambda _: 2)
    assert len(build(network()).kernels) > 6


def scaled(size: int) -> Callable[[], Tensors]:
    x = placeholder((size,), name="x")
    y = compute((size,), lambda i: x[i] * 2.0, name="y")
    return lambda: ((x,), (y,))


def doubled() -> KernelRequest:
    return KernelRequest("doubled", scaled(64), source="node 7")


def test_errors_are_those_of_this_process(one: KernelWorkers) -> None:
    request = doubled()
    wrong = KernelRequest(
        "doubled", request.tensors, source="node 7", plan=parse_plan("nowhere: Recompute(fuse=True)\n")
    )
    with pytest.raises(LoweringError) as here:
        make_kernel(wrong, host(), None, None).result()
    coming = make_kernel(wrong, host(), None, None, elsewhere=one)
    with pytest.raises(LoweringError) as there:
        coming.result()
    assert str(there.value) == str(here.value)
    assert "node 7" in str(there.value)
    made = make_kernel(request, host(), None, None, elsewhere=one).result()  # it goes on with the next
    assert {s.thread for s in made.spans} > {one.pids[0]}


def test_plans_of_records_are_followed_or_left_out(one: KernelWorkers, tmp_path: Path) -> None:
    def broken(request: KernelRequest, target: Target) -> str:
        return re.sub(r"(rows=|sizes=\()\d+", r"\1'many'", plan_of(request, target))

    for name, plan in (("good", plan_of), ("broken", broken)):
        records = tmp_path / name
        rules = tune(records, products(), plan)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            made = build(products(), options=CompileOptions(records=str(records)))
        followed = [r for r in made.requests.values() if r.record is not None]
        assert len(followed) + len(warned) == len(made.kernels)
        assert bool(warned) == (name == "broken")
        own, by_rules = ({k.name: k.module for k in c.kernels.values()} for c in (made, rules))
        assert (own == by_rules) == (name == "broken")  # the plans that are followed are dearer ones


def test_a_job_that_cannot_be_sent_is_done_here(one: KernelWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(job: object) -> bytes:
        raise TypeError("cannot pickle it")

    monkeypatch.setattr("weft.driver.groups.kernel_workers.pickle.dumps", refuse)
    made = make_kernel(doubled(), host(), None, None, elsewhere=one).result()
    assert one.pids[0] not in {s.thread for s in made.spans}


def test_claims_are_given_back_at_the_end(tmp_path: Path) -> None:
    """A compilation that ends early leaves none behind, for which the next one would wait."""
    cache = Cache(tmp_path)
    with ready(1) as workers:
        for n in range(3):
            wide = KernelRequest(f"wide_{n}", scaled(4096 + n))
            make_kernel(wide, host(), cache, None, elsewhere=workers)
    start = time.monotonic()
    for n in range(3):
        assert make_kernel(KernelRequest(f"wide_{n}", scaled(4096 + n)), host(), cache, None).result().module.data
    assert time.monotonic() - start < 60


def test_an_answer_is_always_one() -> None:
    job = job_of(doubled(), host())
    assert job is not None
    assert pickle.loads(answer(pickle.dumps(replace(job, program="def")))).startswith("TextError: ")


def test_what_no_text_tells_is_made_here() -> None:
    assert job_of(doubled(), host()) is not None
    assert job_of(KernelRequest("doubled", doubled().tensors, choose=lambda found: found[-1]), host()) is None


@pytest.mark.parametrize(
    ("cores", "limit", "executable", "count"),
    [
        pytest.param(1, None, "python3", 0, id="one processor"),
        pytest.param(2, None, "python3", 1, id="two processors"),
        pytest.param(64, None, "python3.13", 2, id="by the calls of the model"),
        pytest.param(64, "2", "python3", 1, id="a limit"),
        pytest.param(64, "1", "python3", 0, id="no others"),
        pytest.param(64, None, "my_application", 0, id="a program with Python in it"),
        pytest.param(64, None, "", 0, id="a program that does not say where it is"),
    ],
)
def test_how_many_processes_there_are(
    cores: int, limit: str | None, executable: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rt, "cpus", lambda: cores)
    monkeypatch.setattr(sys, "executable", executable and f"/usr/bin/{executable}")
    monkeypatch.delenv(PROCESSES)
    if limit is not None:
        monkeypatch.setenv(PROCESSES, limit)
    assert worker_count(network(list(range(8, 40)))) == count


def test_a_small_model_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rt, "cpus", lambda: 8)
    monkeypatch.setenv(PROCESSES, "8")
    assert worker_count(network()) == 0


@pytest.mark.parametrize("given", ["0", "-1", "many", ""])
def test_a_limit_that_is_no_number(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROCESSES, given)
    with pytest.raises(InputError, match=PROCESSES):
        worker_count(network())

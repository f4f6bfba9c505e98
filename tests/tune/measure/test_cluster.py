"""A Dask cluster on this machine whose workers are killed while they work."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from itertools import islice
from pathlib import Path

import pytest
from tests.tune.measure import hostile
from tests.tune.measure.programs import job, random_plans

from weft.records import Hardware
from weft.support.errors import DeviceError, InputError, ToolchainError
from weft.targets import host
from weft.tune import tune_model
from weft.tune.measure import Failed, Limits, Measurer, check_cluster, cluster_executor
from weft.tune.measure import cluster as reached

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs=50
    ) as made:
        yield made


@pytest.fixture(scope="module")
def executor(cluster: object) -> Iterator[Executor]:
    with cluster_executor(cluster.scheduler_address) as made:  # type: ignore[attr-defined]
        yield made


def test_a_killed_worker_loses_nothing(cluster: object, executor: Executor) -> None:
    futures = [executor.submit(hostile.square, n, 0.1) for n in range(20)]
    assert futures[0].result(60) == 0
    victim = next(iter(cluster.workers.values())).pid  # type: ignore[attr-defined]
    os.kill(victim, signal.SIGKILL)
    assert [f.result(60) for f in futures] == [n * n for n in range(20)]


def test_two_clients_share_a_cluster_and_lose_nothing_with_a_worker(cluster: object, executor: Executor) -> None:
    plans = list(islice(random_plans(), 6))
    with cluster_executor(cluster.scheduler_address) as other:  # type: ignore[attr-defined]
        squares = [other.submit(hostile.square, n, 0.05) for n in range(20)]
        outcomes = Measurer(job(), executor, executor, limits=Limits(seconds=0.002)).submit(plans)
        first = next(outcomes)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)  # type: ignore[attr-defined]
        found = [first, *outcomes]
        assert {o.plan for o in found if o.measured is not None} == set(plans)
        assert [f.result(60) for f in squares] == [n * n for n in range(20)]
    assert executor.submit(hostile.square, 5).result(60) == 25


def test_workers_are_to_be_machines_like_this(cluster: object, monkeypatch: pytest.MonkeyPatch) -> None:
    address = cluster.scheduler_address  # type: ignore[attr-defined]
    check_cluster(address, host())
    monkeypatch.setattr(reached, "hardware_of", lambda _: Hardware("another"))
    with pytest.raises(DeviceError) as error:
        check_cluster(address, host())
    assert re.match(
        rf"(\d) of \1 workers of the cluster at {address} are other machines than this one: tcp:", str(error.value)
    )
    assert "hint: a record is of one kind of machine" in str(error.value)


def test_a_cluster_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.tune.measure import dask_executor

    monkeypatch.setattr(dask_executor, "PATIENCE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(DeviceError, match=r"has no workers(.|\n)*dask worker"),
    ):
        check_cluster(empty.scheduler_address, host())


def test_a_cluster_is_looked_for_before_anything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_model, "build", None)
    with pytest.raises(InputError, match="'nowhere' is no address of a cluster"):
        tune_model.tune("model.onnx", records=tmp_path / "tune.db", tuner="random", cluster="nowhere")
    assert not (tmp_path / "tune.db").exists()


def test_a_job_that_crashes_leaves_the_worker_alone(executor: Executor) -> None:
    lost: Future[object] = executor.submit(hostile.leave, 4)
    assert lost.result(60) == Failed("crash", "it ended with the status 4")
    assert executor.submit(hostile.square, 4).result(60) == 16


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reached, "CONNECT", "no_dask_here:Executor")
    with pytest.raises(ToolchainError) as error:
        cluster_executor("tcp://127.0.0.1:1")
    assert str(error.value) == (
        "a cluster is reached by Dask, and there is no package no_dask_here\n  hint: pip install no_dask_here"
    )


def test_an_address_where_nobody_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.tune.measure import dask_executor

    monkeypatch.setattr(dask_executor, "PATIENCE", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(DeviceError, match="no cluster answers at"):
            cluster_executor(address)


def test_what_is_no_address_is_told() -> None:
    with pytest.raises(InputError, match=r"'nowhere' is no address of a cluster(.|\n)*tcp://host:8786"):
        cluster_executor("nowhere")

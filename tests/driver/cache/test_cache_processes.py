"""Processes that share a cache: nothing is made twice, whoever waits takes what was made, and who is killed frees all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.models import mlp
from tests.support.processors import keep_pretended

import weft
from weft.driver import kernel
from weft.driver.cache import lock
from weft.driver.cache.cache_folder import NAME
from weft.driver.cache.cache_key import claim_key
from weft.driver.cache.code_cache import Cache
from weft.driver.cache.lock import Claim, claim
from weft.driver.options import CompileOptions
from weft.targets import host

COMPILE = """
import sys, numpy, weft
from weft.driver import kernel
stages, lowered, lower = [], [], kernel.lower
def counted(program, *args, **named):
    lowered.append(program.entry.name)
    return lower(program, *args, **named)
kernel.lower = counted
import weft.driver.compile
print("ready", flush=True)
sys.stdin.readline()
y = weft.compile(sys.argv[1], progress=lambda stage, *_: stages.append(stage))(numpy.ones((2, 24), numpy.float32))
print("read" in stages, len(lowered), y.tobytes().hex())
"""
TELL = "import sys, weft; weft.compile(sys.argv[1], progress=lambda stage, *_: print(stage, flush=True))"
CLAIM = """
import sys, time
from pathlib import Path
from weft.driver.cache.lock import claim
held = claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""
COUNT = """
import sys, time
from pathlib import Path
from weft.driver.cache.lock import claim
path, counter = Path(sys.argv[1]), Path(sys.argv[2])
for _ in range(60):
    with claim(path):
        count = int(counter.read_text())
        time.sleep(0.0005)
        counter.write_text(str(count + 1))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of the test's own, empty but for the facts of a processor that is in no table."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    keep_pretended()
    return tmp_path / "cache" / NAME


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a test, which end with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for p in processes:
        p.kill()
        p.communicate()


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(started: list[subprocess.Popen[str]]) -> Start:
    """Starts Python with some code and arguments."""

    def begin(code: str, *args: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    return begin


def is_held(path: Path) -> bool:
    """Tells whether somebody holds the claim for which the file at *path* stands."""
    told: list[str] = []
    claim(path, lambda: told.append("wait"), patience=0.0).release()
    return told == ["wait"]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def compile_at_once(start: Start, *models: Path) -> list[tuple[bool, int, str]]:
    """Compiles each model in a process, all at the same time; returns whether it did, the kernels it made, and the output."""
    processes = [start(COMPILE, m) for m in models]
    assert [first_line(p) for p in processes] == ["ready"] * len(models)  # all is imported
    for p in processes:
        assert p.stdin is not None
        p.stdin.write("go\n")
        p.stdin.flush()
    printed = [p.communicate()[0].split() for p in processes]
    assert [p.returncode for p in processes] == [0] * len(models)
    return [(compiled == "True", int(count), output) for compiled, count, output in printed]


def test_one_compiles_and_the_others_load(folder: Path, tmp_path: Path, start: Start) -> None:
    model = tmp_path / "mlp.onnx"
    model.write_bytes(mlp().SerializeToString())
    done = compile_at_once(start, model, model, model)
    assert sorted(compiled for compiled, _, _ in done) == [False, False, True]
    assert len({output for _, _, output in done}) == 1
    kernels = len(list(folder.glob("kernel-*")))
    assert sorted(count for _, count, _ in done) == [0, 0, kernels]
    assert list(folder.glob(".*")) == []


def test_different_models_make_each_kernel_once(folder: Path, tmp_path: Path, start: Start) -> None:
    models = [tmp_path / "one.onnx", tmp_path / "two.onnx"]
    for path in models:
        path.write_bytes(mlp().SerializeToString())
    done = compile_at_once(start, *models)
    assert [compiled for compiled, _, _ in done] == [True, True]
    assert sum(count for _, count, _ in done) == len(list(folder.glob("kernel-*"))) > 1
    assert len({output for _, _, output in done}) == 1
    assert list(folder.glob(".*")) == []


def test_what_is_made_between_the_look_and_the_claim_is_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, stages = tmp_path / "mlp.onnx", list[str]()
    model.write_bytes(mlp().SerializeToString())
    weft.compile(model)
    away, plain_claim = tmp_path / "away", Cache.claim
    folder.rename(away)

    def claim_late(cache: Cache, kind: str, key: str, waiting: Callable[[], object] | None = None) -> Claim:
        if not cache.path(kind, key).exists():
            shutil.copytree(
                away, folder, dirs_exist_ok=True
            )  # as another process may, that has released the claim by now
        return plain_claim(cache, kind, key, waiting)

    monkeypatch.setattr(Cache, "claim", claim_late)
    weft.compile(model, progress=lambda stage, *_: stages.append(stage))
    assert "read" not in stages
    shutil.rmtree(folder)
    copied = tmp_path / "copy.onnx"
    copied.write_bytes(model.read_bytes())  # another file: its package is made, of the kernels that there are
    monkeypatch.setattr(kernel, "lower_kernel", None)
    weft.compile(copied)


def test_who_waits_says_so_and_takes_over(folder: Path, tmp_path: Path, start: Start) -> None:
    model = tmp_path / "mlp.onnx"
    model.write_bytes(mlp().SerializeToString())
    key = claim_key(model, host(), CompileOptions(), None)
    assert key is not None
    held = Cache(folder).claim("model", key)
    process = start(
        "import sys, weft; weft.compile(sys.argv[1], progress=lambda stage, done, total: print(stage, flush=True))",
        model,
    )
    assert first_line(process) == "wait"
    held.release()  # without having made it
    assert first_line(process) == "read"  # for the claim was given back without a model
    process.communicate()
    assert process.returncode == 0


def test_a_killed_process_frees_what_it_claimed(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "lock"
    process = start(CLAIM, path)
    assert first_line(process) == "held"
    threading.Timer(0.2, process.send_signal, [signal.SIGKILL]).start()
    told: list[str] = []
    with claim(path, lambda: told.append("wait"), patience=30):
        assert told == ["wait"]
        assert process.wait(5) == -signal.SIGKILL
        assert path.exists()
    assert not path.exists()
    process.communicate()


def test_a_claim_is_held_by_one_at_a_time(tmp_path: Path, start: Start) -> None:
    counter = tmp_path / "count"
    counter.write_text("0")
    processes = [start(COUNT, tmp_path / "lock", counter) for _ in range(4)]
    for p in processes:
        p.communicate()
    assert counter.read_text() == "240"
    assert os.listdir(tmp_path) == ["count"]


def test_threads_wait_for_one_another(tmp_path: Path) -> None:
    told: list[str] = []
    with claim(tmp_path / "lock"):
        thread = threading.Thread(target=lambda: claim(tmp_path / "lock", lambda: told.append("wait")).release())
        thread.start()
        while not told:
            time.sleep(0.001)
        assert thread.is_alive()
    thread.join(10)
    assert not thread.is_alive()
    assert told == ["wait"]


def test_patience_ends(tmp_path: Path) -> None:
    with claim(tmp_path / "lock") as first:
        begin = time.monotonic()
        second = claim(tmp_path / "lock", patience=0.1)
        assert 0.1 <= time.monotonic() - begin < 5
        second.release()
        assert is_held(tmp_path / "lock")  # by the first one, still
        first.release()
    assert not is_held(tmp_path / "lock")


def test_where_nothing_can_be_locked_nobody_waits(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "no folder" / "lock")
    assert not is_held(tmp_path / "no folder" / "lock")  # nothing is used up


def test_only_so_many_files_are_open(tmp_path: Path) -> None:
    held = [claim(tmp_path / str(n)) for n in range(lock.MOST + 10)]
    assert len(os.listdir(tmp_path)) == lock.MOST
    for one in held:
        one.release()
    assert os.listdir(tmp_path) == []
    with claim(tmp_path / "lock"):
        assert is_held(tmp_path / "lock")

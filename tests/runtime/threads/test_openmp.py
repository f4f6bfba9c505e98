"""Parallel loops by the threads of an OpenMP runtime of the process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.runtime.conftest import FlatImage

from weft.native import _rt

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
NUMBER = ctypes.CFUNCTYPE(ctypes.c_int)

IN_PYTORCH = """
import os, sys
import numpy as np, torch
from weft.integrations.torch_threads import share_threads
from weft.native import _rt

sys.path.insert(0, {tests!r})
blob, count = open({blob!r}, "rb").read(), {count}

def tasks():
    return len(os.listdir("/proc/self/task"))

def check():
    counts = np.zeros(10_000, np.int64)
    _rt.call(blob, count, [counts], [10_000], threads=2)
    assert (counts == np.arange(10_000, dtype=np.int64) ** 2 + 1).all()

torch.set_num_threads(2)
torch.ones(1_000_000).add(1)  # its team of threads is there from here on
assert share_threads()
before = tasks()
check()
assert tasks() == before, "the pool has started threads of its own"
child = os.fork()
if child == 0:
    check()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
before = tasks()
_rt.use_openmp(0, 0)
check()
assert tasks() == before + 1
print("done")
"""


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[int]]]:
    """A function that lets so many threads do all loops; it returns the list of the numbers asked for in each."""
    asked: list[int] = []
    kept = []

    def of(members: int) -> list[int]:
        numbers: dict[int, int] = {}

        def member(part: int, data: int, number: int) -> None:
            numbers[ctypes.pythonapi.PyThread_get_thread_ident()] = number
            PART(part)(data)

        def parallel(part: int, data: int, threads: int, _flags: int) -> None:
            asked.append(threads)
            others = [Thread(target=member, args=(part, data, k)) for k in range(1, members)]
            for thread in others:
                thread.start()
            member(part, data, 0)
            for thread in others:
                thread.join()

        functions = PARALLEL(parallel), NUMBER(lambda: numbers[ctypes.pythonapi.PyThread_get_thread_ident()])
        kept.append(functions)
        _rt.use_openmp(*(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions))
        return asked

    yield of
    _rt.use_openmp(0, 0)


@pytest.mark.parametrize("members", [1, 2, 3])
def test_each_index_is_done_once_by_teams_of_any_size(
    team: Callable[[int], list[int]], flat: FlatImage, members: int
) -> None:
    """OpenMP may give fewer threads than are asked for, such as one inside of a parallel region."""
    asked = team(members)
    counts = np.zeros(1001, np.int64)
    _rt.call(flat.blob, flat.symbols["count"], [counts], [1000], threads=3)
    np.testing.assert_array_equal(counts, [*(np.arange(1000) ** 2 + 1), 0])
    assert asked == [3]


def test_loops_inside_of_loops_and_loops_of_one_thread_are_not_handed_over(
    team: Callable[[int], list[int]], flat: FlatImage
) -> None:
    asked = team(2)
    counts = np.zeros(30 * 17, np.int64)
    _rt.call(flat.blob, flat.symbols["nested"], [counts], [30, 17], threads=2)
    _rt.call(flat.blob, flat.symbols["count"], [counts[:17]], [17], threads=1)
    np.testing.assert_array_equal(counts.reshape(30, 17)[1:], np.tile(np.arange(17) ** 2 + 1, (29, 1)))
    assert asked == [2]


def test_pytorchs_team_does_the_loops(flat: FlatImage, tmp_path: Path) -> None:
    """No second team is started beside it; a child of fork, where the team is gone, has the pool's own threads."""
    pytest.importorskip("torch")
    (tmp_path / "flat").write_bytes(flat.blob)
    script = IN_PYTORCH.format(tests=str(Path.cwd()), blob=str(tmp_path / "flat"), count=flat.symbols["count"])
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done.stderr

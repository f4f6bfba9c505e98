"""Bare kernels: arguments, contexts, statuses, timing, and memory protection."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.runtime.conftest import FlatImage

from weft.native import _rt
from weft.support import dtypes


def test_dtype_codes_are_those_of_the_compiler() -> None:
    assert dtypes.CODES == _rt.DTYPES


def test_call_passes_buffers_then_scalars(flat: FlatImage) -> None:
    x = np.arange(5, dtype=np.float32)
    y = np.zeros_like(x)
    _rt.call(flat.blob, flat.symbols["scale"], [x, y], [5, 3])
    np.testing.assert_array_equal(y, 3 * x)


def test_call_passes_sixteen_arguments(flat: FlatImage) -> None:
    out = np.zeros(1, np.int64)
    _rt.call(flat.blob, flat.symbols["sixteen"], [out], list(range(1, 16)))
    assert out[0] == sum(i * i for i in range(1, 16))


def test_call_passes_more_arguments_than_that(flat: FlatImage) -> None:
    out = np.zeros(1, np.int64)
    _rt.call(flat.blob, flat.symbols["sixteen"], [out], list(range(1, 100)))
    assert out[0] == sum(i * i for i in range(1, 16)), "those that the kernel does not take are passed in vain"


def test_call_refuses_too_many_arguments(flat: FlatImage) -> None:
    with pytest.raises(ValueError, match="at most 128 arguments"):
        _rt.call(flat.blob, flat.symbols["sixteen"], [np.zeros(1)] * 2, list(range(127)))


def test_call_takes_bfloat16_as_its_bits(flat: FlatImage) -> None:
    x = np.array([1.0, -2.0], dtype=ml_dtypes.bfloat16)
    out = np.zeros(1, np.int32)
    _rt.call(flat.blob, flat.symbols["lookup"], [out], [2])
    _rt.call(flat.blob, flat.symbols["scale"], [x, x], [1, 2])  # two bfloat16 values are one float's bytes
    assert out[0] == 30
    assert x.view(np.float32)[0] == 2 * np.array([1.0, -2.0], dtype=ml_dtypes.bfloat16).view(np.float32)[0]


@pytest.mark.parametrize("offset", [-1, 1 << 40])
def test_call_refuses_an_offset_outside_of_the_image(flat: FlatImage, offset: int) -> None:
    with pytest.raises(ValueError, match="outside of the image"):
        _rt.call(flat.blob, offset, [])


def test_context_has_arena_constants_and_allocator(flat: FlatImage) -> None:
    out = np.zeros(5, np.int64)
    constants = _rt.Block(128)
    _rt.call(flat.blob, flat.symbols["describe"], [out], threads=3, constants=constants, arena_bytes=1000)
    assert out.tolist() == [0, 1000, constants.address, 3, 0]


def test_image_maps_read_only_data(flat: FlatImage) -> None:
    image = _rt.Image(flat.blob, flat.readonly)
    out = np.zeros(1, np.int32)
    _rt.call(image, flat.symbols["lookup"], [out], [3])
    assert out[0] == 40
    assert image.nbytes == len(flat.blob)


@pytest.mark.parametrize("readonly", [-4096, 100, 1 << 30])
def test_image_refuses_a_misplaced_read_only_part(flat: FlatImage, readonly: int) -> None:
    with pytest.raises(ValueError, match="read-only part"):
        _rt.Image(flat.blob, readonly)


def test_image_refuses_to_be_empty() -> None:
    with pytest.raises(ValueError, match="empty"):
        _rt.Image(b"")


@pytest.mark.parametrize("kernel", ["overwrite", "overwrite_code"])
def test_nothing_mapped_is_writable(flat: FlatImage, kernel: str, tmp_path: Path) -> None:
    """The processor refuses: the child process ends by a signal, and not by the kernel's return."""
    (tmp_path / "blob").write_bytes(flat.blob)
    script = (
        "import sys, resource, pathlib; from weft.native import _rt; resource.setrlimit(resource.RLIMIT_CORE, (0, 0));"
        "_rt.call(_rt.Image(pathlib.Path(sys.argv[1]).read_bytes(), int(sys.argv[2])), int(sys.argv[3]), [b'0000'])"
    )
    arguments = [str(tmp_path / "blob"), str(flat.readonly), str(flat.symbols[kernel])]
    done = subprocess.run([sys.executable, "-c", script, *arguments], check=False, capture_output=True)
    assert done.returncode == -11


def test_time_kernel_returns_nanoseconds_of_each_repeat(flat: FlatImage) -> None:
    x = np.ones(100_000, np.float32)
    small = _rt.time_kernel(flat.blob, flat.symbols["scale"], [x, x], [1_000, 1], repeats=5, number=20)
    large = _rt.time_kernel(flat.blob, flat.symbols["scale"], [x, x], [100_000, 1], repeats=5, number=20)
    assert len(small) == len(large) == 5
    assert 0 < min(small) < min(large) < 1e8


def test_time_kernel_reports_failure(flat: FlatImage) -> None:
    with pytest.raises(_rt.Failed) as caught:
        _rt.time_kernel(flat.blob, flat.symbols["failing"], [np.zeros(1, np.int64)], [1])
    assert caught.value.args == (41, "kernel", 7, (0, 0, 0, 0))


@pytest.mark.parametrize("processor_time", [False, True])
def test_time_in_turn_reads_the_clock_between_kernels(flat: FlatImage, processor_time: bool) -> None:
    image, order = _rt.Image(flat.blob, flat.readonly), np.zeros(3, np.int32)
    calls = [(image, flat.symbols["lookup"], [order[n:]]) for n in range(3)]
    now = time.thread_time_ns if processor_time else time.perf_counter_ns
    before = now()
    stamps = _rt.time_in_turn(calls, 5, processor_time=processor_time)
    after = now()
    assert [len(row) for row in stamps] == [4] * 5
    flat_stamps = [before, *(x for row in stamps for x in row), after]
    assert flat_stamps == sorted(flat_stamps)
    assert order.tolist() == [10, 10, 10]


def test_time_in_turn_stops_at_the_first_failure(flat: FlatImage) -> None:
    image, after, bad = _rt.Image(flat.blob, flat.readonly), np.zeros(1, np.int32), np.zeros(1, np.int64)
    calls: list[tuple[_rt.Image, int, list[np.ndarray]]] = [
        (image, flat.symbols["failing"], [bad, bad]),  # the second for a large number: where it lies
        (image, flat.symbols["lookup"], [after]),
    ]
    with pytest.raises(_rt.Failed) as caught:
        _rt.time_in_turn(calls, 2)
    assert caught.value.args[1:3] == ("kernel", 7)
    assert after[0] == 0
    with pytest.raises(ValueError, match="repeats"):
        _rt.time_in_turn(calls, -1)
    assert _rt.time_in_turn(calls, 0) == []


def test_blocks_are_aligned_writable_buffers() -> None:
    for nbytes, align in [(1, 64), (1 << 20, 64), (5 << 20, 2 << 20)]:
        block = _rt.Block(nbytes)
        view = np.frombuffer(memoryview(block), np.uint8)
        view[:] = 7
        assert (block.address % align, len(view), int(view.sum(dtype=np.int64))) == (0, nbytes, 7 * nbytes)


def test_block_refuses_what_no_machine_has() -> None:
    for nbytes in (1 << 62, -1):
        with pytest.raises(MemoryError):
            _rt.Block(nbytes)


def test_large_blocks_are_handed_out_again() -> None:
    """Memory fresh from the system would be cleared first; what somebody still holds is left alone."""
    size = (5 << 20) + 64
    first, held = _rt.Block(size), _rt.Block(size)
    places = [first.address, held.address]
    del first
    assert _rt.Block(size).address == places[0]
    assert _rt.Block(size + 1).address != places[0]
    assert held.address == places[1]


def test_only_the_last_of_large_blocks_are_kept() -> None:
    """64 MiB in all are: two of four blocks of 24."""
    sizes = [(24 << 20) + n for n in range(4)]
    blocks = [_rt.Block(n) for n in sizes]
    places = [b.address for b in blocks]
    while blocks:
        del blocks[0]
    again = [_rt.Block(n) for n in reversed(sizes[2:])]
    assert [b.address for b in again] == places[:1:-1]

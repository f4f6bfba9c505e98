"""Vectors that are rounded on their way to shared memory: all loads of a batch before the first store."""

from __future__ import annotations

from weft.cost import BATCHED_FETCHES
from weft.loop import parse_program
from weft.lower.grid.batch_fetches import batch_fetches

KERNEL = """
@function(kernel=1)
def f(A: f32[1024]):
    S = alloc("{scope}", bf16[512])
    for tx in bound(0, 4, thread="threadIdx.x"):
        for i in unrolled(0, {count}):
            for j in unrolled(0, 2):
                S[ramp(tx * 128 + i * 8 + j * 4, 1, 4)] = {value}
"""
ROUNDED = "bf16x4(A[ramp(tx * 256 + i * 16 + j * 8, 1, 4)])"


def batched(value: str = ROUNDED, scope: str = "shared", count: int = 8) -> list[str]:
    """Returns the lines of the kernel once its fetch is in batches."""
    text = KERNEL.format(value=value, scope=scope, count=count)
    made = batch_fetches(parse_program(text))
    assert parse_program(str(made)) is not None
    return [line.strip() for line in str(made).splitlines()]


def test_a_batch_is_loaded_before_it_is_stored() -> None:
    lines = batched()
    assert any(f'alloc("register", bf16[{BATCHED_FETCHES}])' in line for line in lines)
    (load,) = [n for n, line in enumerate(lines) if "bf16x4(A[" in line]
    (store,) = [n for n, line in enumerate(lines) if line.startswith("S[ramp(")]
    assert load < store
    assert lines[load].startswith("fetched[ramp(")
    assert "i_batch in unrolled(0, 2)" in " ".join(lines)


def test_a_number_that_does_not_divide_has_smaller_batches() -> None:
    assert "i_batch in unrolled(0, 3)" in " ".join(batched(count=9))


def test_zeros_and_private_memory_stay() -> None:
    same = [line.strip() for line in KERNEL.format(value=ROUNDED, scope="register", count=8).splitlines() if line]
    assert [line for line in batched(scope="register") if line] == same
    assert not any("fetched" in line for line in batched("broadcast(bf16(0.0), 4)"))

"""What a loop that fetches ahead rounds is loaded in the iteration before it is stored."""

from __future__ import annotations

import pytest

from weft.loop import parse_program
from weft.lower.grid.load_before import load_before

KERNEL = """
@function(kernel=1)
def f(A: f32[4096], Y: f32[4]):
    S = alloc("shared", {stored}[512])
    for tx in bound(0, 4, thread="threadIdx.x"):
        for k in range(0, 9):
            call("weft.barrier")
            if k < 8:
                for i in unrolled(0, {count}):
                    S[ramp(k % 2 * 256 + tx * 64 + i * 4, 1, 4)] = {value}
            call("weft.copy.commit")
"""
VECTOR = "A[ramp(k * 256 + tx * 64 + i * 4, 1, 4)]"
TF32 = f"select(0 < k + tx, reinterpret(u32x4, round_tf32({VECTOR})), broadcast(u32(0), 4))"


def lines_of(value: str = TF32, stored: str = "u32", count: int = 8) -> list[str]:
    made = load_before(parse_program(KERNEL.format(value=value, stored=stored, count=count)))
    assert parse_program(str(made)) is not None
    return [line.strip() for line in str(made).splitlines()]


@pytest.mark.parametrize(("value", "stored"), [(TF32, "u32"), (f"bf16x4({VECTOR})", "bf16")], ids=["tf32", "bf16"])
def test_a_batch_is_loaded_an_iteration_before(value: str, stored: str) -> None:
    lines = lines_of(value, stored)
    loop = next(n for n, line in enumerate(lines) if line.startswith("for k in"))
    before, ahead = [n for n, line in enumerate(lines) if line.startswith("fetched[ramp(")]
    (store,) = [n for n, line in enumerate(lines) if line.startswith("S[ramp(")]
    assert before < loop < store < ahead
    assert "A[ramp(" not in lines[store]  # what registers have is rounded as it is stored
    assert "round_tf32" not in lines[ahead]
    assert "bf16" not in lines[ahead]
    assert lines[ahead - 2] == "if k < 7:"
    assert "A[ramp(tx * 64 + k * 256 + i_2 * 4 + 256, 1, 4)]" in lines[ahead]
    if stored == "u32":
        assert "select(0 <= tx + k" in lines[ahead]
        assert "broadcast(0.0, 4)" in lines[ahead]


def test_other_batches_follow_it_in_the_same_registers() -> None:
    lines = [line for line in lines_of(count=16) if line.startswith(("fetched[", "S["))]
    assert [line[0] for line in lines] == ["f", "S", "f", "S", "f"]
    assert not any("fetched_1" in line for line in lines)


@pytest.mark.parametrize(
    "value",
    [TF32.replace("u32(0)", "u32(7)"), "reinterpret(u32x4, " + VECTOR + ")", "broadcast(u32(0), 4)"],
    ids=["no zeros", "not rounded", "nothing loaded"],
)
def test_others_stay_as_they_are(value: str) -> None:
    program = parse_program(KERNEL.format(value=value, stored="u32", count=8))
    assert load_before(program) == program
    assert not any("fetched" in line for line in lines_of(value))


def test_memory_that_the_loop_changes_is_read_when_it_was() -> None:
    text = KERNEL.format(value=TF32, stored="u32", count=8)
    changed = text.replace('            call("weft.copy.commit")', "            A[tx + k * 4] = 0.0")
    assert "fetched" not in str(load_before(parse_program(changed)))

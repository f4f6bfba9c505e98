"""Programs that differ in sizes alone have one structure, and the sizes tell them apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.schedule.programs import matmul

from weft.loop import canonical_text, parse_program, structure_text

SIZES = st.tuples(*[st.integers(2, 5)] * 3)

TEXT = """
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(0, M):
        for j in range(0, N):
            for k in range(0, K):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]
"""


def product(sizes: tuple[int, ...], text: str = TEXT) -> tuple[str, tuple[int, ...]]:
    for name, size in zip("MKN", sizes, strict=True):
        text = text.replace(f"{name},", f"{size},").replace(f"{name}]", f"{size}]").replace(f"{name})", f"{size})")
    return structure_text(parse_program(text))


@given(SIZES, SIZES)
def test_sizes_do_not_count_equal_ones_neither(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    one, other = product(a), product(b)
    assert one[0] == other[0]
    assert (one[1] == other[1]) == (a == b)


def test_what_is_computed_counts() -> None:
    assert product((2, 3, 4))[0] != product((2, 3, 4), TEXT.replace("*", "+"))[0]
    assert product((2, 3, 4))[0] != product((2, 3, 4), TEXT.replace("f32", "f64"))[0]
    assert product((2, 3, 4))[0] != product((2, 3, 4), TEXT.replace("A[i, k]", "1.0"))[0]


def test_names_do_not_count() -> None:
    assert product((2, 3, 4)) == product((2, 3, 4), TEXT.replace("A", "X"))


def test_one_program_has_one_structure_and_its_text_has_all() -> None:
    program = matmul().program
    text, sizes = structure_text(program)
    assert (text, sizes) == structure_text(program)
    assert text.count("?") == len(sizes)
    assert len(canonical_text(program)) > 0

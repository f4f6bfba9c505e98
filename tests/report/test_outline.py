"""Loops at a glance."""

from __future__ import annotations

from weft.cli.report.outline import outline
from weft.driver.build import Compilation

PRODUCT = """def product(a: f32[64, 32], b: f32[32, 16], c: f32[64, 16]):
    acc = alloc("register", f32[64, 16])
    for i in parallel(0, 64):
        for j_init in vectorized(0, 16):
            with block("c_init", vi=spatial(64, i), vj=spatial(16, j_init)):
                reads()
                writes(acc[vi, vj])
                acc[vi, vj] = 0.0
        for k in range(0, 32):
            for j in vectorized(0, 16):
                with block("c", vi_1=spatial(64, i), vj_1=spatial(16, j), vk=reduce(32, k)):
                    reads(acc[vi_1, vj_1], a[vi_1, vk], b[vk, vj_1])
                    writes(acc[vi_1, vj_1])
                    acc[vi_1, vj_1] = acc[vi_1, vj_1] + a[vi_1, vk] * b[vk, vj_1]
        if i < 32:
            c[i, 0] = acc[i, 0]
"""


def test_a_nest_of_loops_is_one_line() -> None:
    found = outline(PRODUCT)
    assert found["buffers"] == [{"name": "acc", "type": "f32[64, 16]", "scope": "register"}]
    (outer,) = found["items"]
    assert outer["loops"] == [["parallel", "i", "64"]]
    init, product, rest = outer["inside"]
    assert init["loops"] == [["vectorized", "j_init", "16"]]
    assert (init["block"], init["writes"], init["reads"], init["reduces"]) == ("c_init", ["acc"], [], [])
    assert product["loops"] == [["range", "k", "32"], ["vectorized", "j", "16"]]
    assert (product["block"], product["reads"], product["reduces"]) == ("c", ["acc", "a", "b"], ["vk"])
    assert rest["code"] == "if i < 32"
    assert [x["code"] for x in rest["inside"]] == ["write c"]


def test_every_kernel_has_an_outline(made: Compilation) -> None:
    for k in made.kernels.values():
        found = outline(k.scheduled)
        assert found["items"], k.name
        assert len(found["buffers"]) == k.scheduled.count(" = alloc("), k.name

"""What two plans decide differently is told in words."""

from __future__ import annotations

from dataclasses import fields

import pytest

from weft.cli.tune.plan_words import EITHER, plan_differences, words_of
from weft.cost import Decision, ImplicitProduct, Parallel, Prefetch, RegisterTile, parse_plan

BEFORE = parse_plan(
    """\
*: VectorLength(bits=512)
relu: Inline(inline=True)
matmul: Rule(name='k_blocked')
matmul: Tile(rows=6, columns=1, width=64, outer_rows=1)
matmul: KBlocks(axis=0, blocks=2)
matmul: Parallel(loops=1)
"""
)

AFTER = parse_plan(
    """\
*: VectorLength(bits=512)
relu: Inline(inline=False)
matmul: Rule(name='sketch')
matmul: Tile(rows=14, columns=1, width=32, outer_rows=2)
matmul: CacheTile(sizes=(2, 4))
matmul: ReduceTile(sizes=(1, 8), unroll=True)
matmul: OuterOrder(axes=(1, 0))
matmul: Prefetch(panels=True, distance=16)
matmul: Parallel(loops=1)
pad: PadInput(inline=False, by_tile=True)
"""
)


def test_the_decisions_that_differ() -> None:
    assert [(d.subject, str(d)) for d in plan_differences(BEFORE, AFTER)] == [
        ("relu", "inlining: computed by itself instead of inlined"),
        ("matmul", "the rule of a contraction: sketch instead of k blocked"),
        ("matmul", "the register tile of a contraction: 2 x 14 x 32 elements instead of 6 x 64 elements"),
        ("matmul", "the cache tile of a sketch: 2 x 4 register tiles, where the rules have no such choice"),
        (
            "matmul",
            "the inner steps of the reduction of a sketch: 1 x 8 steps, unrolled, where the rules have no such choice",
        ),
        (
            "matmul",
            "the order of loops over cache tiles: axes 1, 0 from the outside in, where the rules have no such choice",
        ),
        (
            "matmul",
            "the prefetch of the B operand: the next panel and 16 rows ahead, where the rules have no such choice",
        ),
        (
            "pad",
            "how a sketch pads its input: copied for each cache tile, where the rules have no such choice",
        ),
        ("matmul", "the blocks of the reduction: no such choice any more; axis 0, blocks 2 before"),
    ]


def test_a_plan_does_not_differ_from_itself() -> None:
    assert plan_differences(AFTER, AFTER) == []


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Parallel(0), "none"),
        (Parallel(1), "the outermost"),
        (Parallel(3), "the 3 outermost"),
        (Prefetch(panels=False, distance=0), "none"),
        (RegisterTile((4, 32)), "4 x 32 elements"),
        (parse_plan("x: WindowTile(sizes=((0, 4), (2, 8)))").steps[0].decision, "0: 4, 2: 8"),
        (parse_plan("x: WindowTile(sizes=())").steps[0].decision, "none"),
        (parse_plan("x: Gemv(pieces=1, rows=4, vectors=2)").steps[0].decision, "pieces 1, rows 4, vectors 2"),
        (parse_plan("x: Accumulators(vectors=4)").steps[0].decision, "4 vectors"),
        (parse_plan("x: WriteOut(all_taps=False)").steps[0].decision, "those of the last axis"),
    ],
)
def test_words(decision: Decision, words: str) -> None:
    assert words_of(decision) == words


def test_the_forms_of_a_convolution_on_a_grid() -> None:
    forms = [ImplicitProduct(product=False), ImplicitProduct(product=True), ImplicitProduct(product=True, merged=True)]
    assert [words_of(f) for f in forms] == [
        "place by place",
        "a product of matrices for each image",
        "one product of matrices for all images",
    ]


def test_both_alternatives_of_every_question_have_words() -> None:
    either = {
        kind
        for kind in Decision.__subclasses__()
        if kind.__module__.startswith("weft.cost.") and [f.type for f in fields(kind)] == ["bool"]
    }
    assert either == set(EITHER)

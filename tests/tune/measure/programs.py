"""Small programs to measure, and kernels that are right, wrong or dangerous."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from weft.codegen import compile_program, link_here
from weft.cost import Choosing
from weft.loop import parse_program
from weft.lower import lower
from weft.schedule import carry_out
from weft.support.dtypes import f32
from weft.targets import host
from weft.te import compute, placeholder, reduce_axis, sum_, to_program
from weft.tune.measure import BuildJob, Built, RunJob, build


@cache
def product(n: int = 64) -> str:
    """A matrix product, as text."""
    A, B, k = placeholder((n, n), f32, "A"), placeholder((n, n), f32, "B"), reduce_axis(n, "k")
    C = compute((n, n), lambda i, j: sum_(A[i, k] * B[k, j], [k]), "C")
    return str(to_program([A, B], [C], "matmul"))


def job(n: int = 64, plan: str | None = None) -> BuildJob:
    return BuildJob(product(n), plan, host())


@cache
def rules_choice(n: int = 64) -> Built:
    """The product as the rules schedule it."""
    made = build(job(n))
    assert isinstance(made, Built)
    return made


def random_plans(n: int = 64, seed: int = 0) -> Iterator[str]:
    """Distinct plans."""
    source, seen = random.Random(seed), set[str]()
    while True:
        planner = Choosing(host(), source.choice)
        carry_out(parse_program(product(n)), planner)
        if str(planner.plan) not in seen:
            seen.add(str(planner.plan))
            yield str(planner.plan)


def kernel(text: str) -> Built:
    """A kernel whose loops are compiled as they stand."""
    program = parse_program(text)
    image = link_here([compile_program(lower(program, host()), host())], host())
    return Built(image.code, image.symbols[program.entry.name], (), "", "[]")


def body(*lines: str, n: int = 64) -> str:
    """A program with the parameters of the product and another body."""
    head = f"def other(A: f32[{n}, {n}], B: f32[{n}, {n}], C: f32[{n}, {n}]):"
    return "\n".join([head, *[f"    {line}" for line in lines]]) + "\n"


def run_job(candidate: Built, incumbent: Built | None = None, n: int = 64) -> RunJob:
    return RunJob(candidate, incumbent, product(n), host())


FOREVER = body("while C[0, 0] >= C[0, 0] or True:", "    C[0, 0] = A[0, 0]")
FAR_OUTSIDE = body("C[1 << 30, 0] = A[0, 0]")
BESIDE = body("for i in range(0, 65):", "    for j in range(0, 64):", "        C[i, j] = A[0, 0]")
INPUT_CHANGED = body("A[3, 3] = 0.0")
NOTHING_WRITTEN = body("C[0, 0] = 0.0")

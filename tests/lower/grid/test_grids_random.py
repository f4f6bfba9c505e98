"""Random phases of threads: lowered, they compute what the same loops do one after another, and nothing races."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tests.lower.running import inputs_of, results
from tests.support.sampling import tried

from weft.codegen.interp.threads.thread_machine import run_threads
from weft.loop import parse_program, verify
from weft.lower import lower
from weft.targets.grid_machines import GENERIC_THREADS

BUFFERS = ("S", "T", "G")
"""Two in shared memory and one in global, of 64 elements, all set before they are used."""

HEAD = """
def main(A: f32[64], G: f32[64], C: f32[3, 64]):
    for b in bound(0, 1, thread="blockIdx.x"):
        S = alloc("shared", f32[64])
        T = alloc("shared", f32[64])
        for i in bound(0, 64, thread="threadIdx.x"):
            S[i] = A[i]
            T[i] = A[63 - i]
"""
TAIL = """
        for o in bound(0, 64, thread="threadIdx.x"):
            C[0, o] = S[o]
            C[1, o] = T[o]
            C[2, o] = G[o]
"""


class Phases:
    """Draws statements, with names of its own for each loop."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.names = 0
        self.serial: list[str] = []

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def pick(self, *values: str) -> str:
        return self.draw(st.sampled_from(values))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def statement(self, depth: int) -> list[str]:
        kind = self.pick("phase", "phase", "phase", "rows", "loop", "if", "one")
        if depth == 0 and kind in ("loop", "if"):
            kind = "phase"
        if kind == "loop":
            k = self.name("k")
            self.serial.append(k)
            body = self.body(depth - 1)
            self.serial.pop()
            return [f"for {k} in range(0, {self.pick('1', '2', '3', 'b')}):", *body]
        if kind == "if":
            cond = f"{self.pick(*self.serial)} < 1" if self.serial else "b < 1"
            return [f"if {cond}:", *self.body(depth - 1)]
        if kind == "one":
            target, source = self.pick(*BUFFERS), self.pick(*BUFFERS)
            return [f"{target}[{self.number(0, 63)}] = {source}[{self.number(0, 63)}] + 1.0"]
        return self.rows() if kind == "rows" else self.phase()

    def body(self, depth: int) -> list[str]:
        lines = [x for _ in range(self.number(1, 3)) for x in self.statement(depth)]
        return [f"    {x}" for x in lines]

    def phase(self) -> list[str]:
        t = self.name("t")
        count = self.pick("8", "32", "64")
        at = self.pick(t, f"{int(count) - 1} - {t}", f"(64 - {count}) + {t}", f"{t} * {64 // int(count)}")
        return [f'for {t} in bound(0, {count}, thread="threadIdx.x"):', f"    {self.store(at, t)}"]

    def rows(self) -> list[str]:
        """Phases of 8 threads in each of some rows of threads, each row with its own part of the buffers."""
        y, lines = self.name("y"), []
        count = self.number(2, 8)
        for _ in range(self.number(1, 2)):
            t = self.name("t")
            target = self.pick(*BUFFERS)
            others = [b for b in BUFFERS if b != target]
            lines += [f'    for {t} in bound(0, 8, thread="threadIdx.x"):']
            lines += [f"        {target}[{y} * 8 + {t}] = {target}[{y} * 8 + {t}] + {self.own_row(others, y, t)}"]
        return [f'for {y} in bound(0, {count}, thread="threadIdx.y"):', *lines] if len(lines) == 2 else self.phase()

    def own_row(self, others: list[str], y: str, t: str) -> str:
        return f"{self.pick(*others)}[{y} * 8 + {self.pick(t, f'(7 - {t})', f'({t} + 3) % 8')}]"

    def store(self, at: str, t: str) -> str:
        target = self.pick(*BUFFERS)
        other = self.pick(*[b for b in BUFFERS if b != target])
        k = f" + {self.pick(*self.serial)}" if self.serial else ""
        where = self.pick(at, f"(({t} * {self.number(1, 5)} + {self.number(0, 63)}{k}) % 64)", str(self.number(0, 63)))
        own = self.pick(f"{target}[{at}] + ", "")
        return f"{target}[{at}] = {own}{other}[{where}] * 0.5"


@st.composite
def programs(draw: st.DrawFn) -> str:
    phases = Phases(draw)
    lines = [x for _ in range(draw(st.integers(1, 5))) for x in phases.statement(2)]
    return HEAD + "".join([f"        {x}\n" for x in lines]) + TAIL.lstrip("\n")


@tried(50, 200, programs())
def test_threads_compute_what_loops_do(text: str) -> None:
    program = parse_program(text)
    verify(program)
    flat = lower(program, GENERIC_THREADS, verify=True)
    verify(flat, flat=True)
    values = inputs_of(program)
    made = [np.ravel(np.asarray(v)).copy() for v in values]
    run_threads(flat, made, GENERIC_THREADS)
    for wanted, found in zip(results(program, values), made, strict=True):
        np.testing.assert_array_equal(found, wanted, str(flat))

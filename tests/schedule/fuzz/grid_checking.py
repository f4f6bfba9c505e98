"""Whether a schedule for a grid is right: its threads compute what NumPy does, and do not race, interpreted and with OpenCL."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tests.schedule.fuzz.computations import computation, random_family
from tests.schedule.fuzz.grid_schedules import grid_schedule
from tests.schedule.programs import Array, Case

from weft.codegen import SourceCode, compile_program, link
from weft.codegen.c_family.kernel_facts import bound_loops, threads_of
from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.thread_machine import Launch, run_threads
from weft.ir import Const, Expr, Var, index, simplify, substitute
from weft.loop import Buffer, Function, Program, stores, verify
from weft.lower import lower
from weft.runtime.devices import Argument, open_device
from weft.schedule import Schedule
from weft.support.errors import LoweringError
from weft.targets import Target
from weft.targets.grid_machines import OPENCL


@dataclass(frozen=True)
class GridCase:
    """A computation with a schedule for a grid, lowered: `flat` is None where lowering refuses it, for the reason `refusal`."""

    name: str
    case: Case
    schedule: Schedule
    flat: Program | None
    refusal: str = ""


@dataclass
class GridTally:
    """How many cases ran, how many lowering refused, and what those that ran had: threads of a block, barriers, bytes shared."""

    ran: int = 0
    refused: int = 0
    threaded: int = 0
    with_barriers: int = 0
    reasons: list[str] = field(default_factory=list)


def grid_case(campaign: int, number: int) -> GridCase:
    """Makes up case *number* of a *campaign*."""
    r = random.Random(f"grid {campaign} {number}")
    family, seed = random_family(r), r.randrange(10**6)
    case = computation(family, seed)
    s = grid_schedule(case.program, r)
    name = f"case {number} of campaign {campaign}: {family} {seed}"
    try:
        flat = lower(s.program, OPENCL, verify=True)
    except LoweringError as error:
        if "breaks its rules" in error.message:  # a bug of a pass
            raise
        return GridCase(name, case, s, None, str(error))
    verify(flat, flat=True)
    return GridCase(name, case, s, flat)


def check_run(c: GridCase, launch: Launch | None = None) -> Counters:
    """Runs a case, its kernels by *launch* if there is one, and fails unless it computes what it should."""
    assert c.flat is not None
    values = c.case.arrays()
    expected = c.case.expected(values)
    given: dict[str, Any] = {k: v if isinstance(v, int) else v.reshape(-1) for k, v in values.items()}
    sizes = {p.name for p in c.flat.entry.params if isinstance(p, Var)}
    inputs = {k: v for k, v in given.items() if not isinstance(v, int) or k in sizes}
    counters = run_threads(c.flat, inputs, OPENCL, launch=launch)
    for name, wanted in zip(c.case.outputs(), expected, strict=True):
        c.case.check(given[name].reshape(wanted.shape), wanted, f"{name} of {c.name}\n{c.schedule.trace}\n{c.flat}")
    return counters


class OnDevice:
    """The kernels of several cases on the device of a target, compiled as one source."""

    def __init__(self, cases: Sequence[GridCase], target: Target = OPENCL) -> None:
        modules, names = [], []
        for n, c in enumerate(cases):
            assert c.flat is not None
            made = compile_program(c.flat, target)
            renamed = tuple([(k, f"{k}_{n}") for k in made.entries])
            modules.append(replace(made, renamed=renamed))
            names += [new for _, new in renamed]
        code = link(modules, target)
        assert isinstance(code, SourceCode)
        self.numbers = {name: n for n, name in enumerate(names)}
        self.device = open_device(target.isa.language, code.text, [code.symbols[name] for name in names])

    def launch_of(self, number: int) -> Launch:
        """What launches the kernels of case *number*."""

        def launch(f: Function, memories: Mapping[Buffer, Array], values: Mapping[Var, int]) -> None:
            known = {v: index(n) for v, n in values.items()}
            grid = {axis: _extent(s.extent, known) for axis, s in bound_loops(f)}
            shape = [*[grid.get(f"blockIdx.{a}", 1) for a in "xyz"], *threads_of(f)]
            if not prod(shape):
                return
            blocks = {b: self.device.alloc(max(1, x.nbytes)) for b, x in memories.items()}
            for b, x in memories.items():
                self.device.write(blocks[b], 0, x.ctypes.data, x.nbytes)
            given = [Argument(blocks[p], 0) if isinstance(p, Buffer) else Argument(None, values[p]) for p in f.params]
            self.device.launch(self.numbers[f"{f.name}_{number}"], shape, given)
            for b in {s.buffer for s in stores(f.body)} & set(memories):
                self.device.read(blocks[b], 0, memories[b].ctypes.data, memories[b].nbytes)
            for block in blocks.values():
                self.device.free(block)

        return launch


def _extent(e: Expr, known: Mapping[Var, Expr]) -> int:
    made = simplify(substitute(e, known))
    assert isinstance(made, Const)
    return int(made.value)


def check_grids(campaign: int, numbers: range, *, with_opencl: bool, wanted: int | None = None) -> GridTally:
    """Fails unless all of these cases are right, or refused by lowering; tells how many were what.

    Where so many are *wanted* to run, those after them are not made.
    """
    tally = GridTally()
    kept = []
    for number in numbers:
        if tally.ran == wanted:
            break
        c = grid_case(campaign, number)
        if c.flat is None:
            tally.refused += 1
            tally.reasons.append(f"{c.name}: {c.refusal}")
            continue
        counters = check_run(c)
        kept.append(c)
        tally.ran += 1
        tally.threaded += any(prod(threads_of(f)) > 1 for f in c.flat.functions[1:])
        tally.with_barriers += counters.barriers > 0
    if with_opencl and kept:
        on = OnDevice(kept)
        for n, c in enumerate(kept):
            check_run(c, on.launch_of(n))
        on.device.close()
    return tally

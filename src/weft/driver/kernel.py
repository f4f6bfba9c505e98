"""One kernel: from tensor expressions to an object, through every layer of the compiler.

formulas -> loops -> schedule -> flat program -> machine code
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from weft.codegen.llvm.compile import ObjectCode, compile_function_module
from weft.ir.expr import Var
from weft.loop.nodes import Program
from weft.lower.pipeline import lower
from weft.schedule.rules import schedule_program
from weft.targets.target import Target
from weft.te import Tensor, to_program


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function that computes one group: its programs along the way, and its machine code.

    `scheduled` is the text of the scheduled loops and `trace` the steps that made it; both are there to be read.
    """

    name: str
    scheduled: str
    trace: str
    flat: Program
    object: ObjectCode
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Lowered:
    """A kernel before LLVM: all that is left to do needs no interpreter lock."""

    name: str
    scheduled: str
    trace: str
    flat: Program
    target: Target
    seconds: float

    def emit(self) -> Kernel:
        """Compiles the flat program."""
        start = perf_counter()
        made = compile_function_module(self.flat, self.target)
        return Kernel(self.name, self.scheduled, self.trace, self.flat, made, self.seconds + perf_counter() - start)


def lower_kernel(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    target: Target,
    sizes: Sequence[Var] = (),
    *,
    verify: bool = False,
) -> Lowered:
    """Schedules and lowers the function *name* that computes *outputs* from *inputs*.

    Its parameters are the inputs, the outputs, then the symbolic sizes.
    """
    start = perf_counter()
    schedule = schedule_program(to_program(inputs, outputs, name, sizes), target)
    flat = lower(schedule.program, target, verify=verify)
    lowered = Lowered(name, str(schedule), str(schedule.trace), flat, target, 0.0)
    return replace(lowered, seconds=perf_counter() - start)

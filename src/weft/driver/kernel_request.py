"""The request for a kernel: its formulas, and all else that its machine code depends on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weft.cost import Choose, Plan, Takes, cheapest
from weft.driver.cache.cache_key import compiler_facts
from weft.ir import Var
from weft.loop import Program, canonical_text
from weft.records import KERNEL, Record, workload_digest
from weft.schedule import Schedule, apply_plan, schedule_program
from weft.support.digest import digest
from weft.targets import Target
from weft.te import Tensor, to_program

Tensors = tuple[Sequence[Tensor], Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class KernelRequest:
    """A kernel that is wanted: its name, and its formulas.

    Whatever a model calls its kernels and the operators in them, it shares those whose loops are the same (`Kernel.named`).
    *tensors* gives the inputs and the outputs when asked; *sizes* are the symbolic sizes; *source* says which nodes of the
    user's model it is for. *loops* are those of the formulas, where they are made already. The function's parameters are the
    inputs, the outputs, then the sizes; where *may_alias*, an output may be in the memory of an input that is read at the
    output's own index only. Without *parallel*, one thread runs it.
    With *lift*, the kernel takes its workspace from its caller, between the outputs and the sizes (`Kernel.workspaces`).
    It is scheduled by *plan* where that is given, else by the candidates that *choose* takes; *record* is the tuning record
    that the plan is from, if it is from one. *cheapest_schedule* is the schedule of the cheapest candidates, if it is known by
    now. *passes* are settings of lowering passes (`Switches.passes`). *target* is its own, where it is not that of the model.
    """

    name: str
    tensors: Callable[[], Tensors]
    sizes: Sequence[Var] = ()
    source: str = ""
    may_alias: bool = False
    parallel: bool = True
    lift: bool = False
    plan: Plan | None = None
    choose: Choose = cheapest
    passes: tuple[str, ...] = ()
    record: Record | None = None
    cheapest_schedule: Schedule | None = None
    target: Target | None = None
    loops: Program | None = None

    @cached_property
    def program(self) -> Program:
        """The loops of the formulas, before they are scheduled."""
        if self.loops is not None:
            return self.loops
        inputs, outputs = self.tensors()
        return to_program(inputs, outputs, self.name, self.sizes)

    @property
    def nameless(self) -> Program:
        """The loops, of a function without a name."""
        entry, *callees = self.program.functions
        return Program((replace(entry, name=""), *callees))

    @cached_property
    def text(self) -> str:
        """The loops as a text without names."""
        return canonical_text(self.nameless)

    @property
    def flags(self) -> str:
        """The inputs of code generation beside the loops, as words: options, and the limits of sizes."""
        limits = ["{}..{}".format(*v.limits) for v in self.sizes if v.limits is not None]
        return " ".join([*[name for name in ("may_alias", "parallel", "lift") if getattr(self, name)], *limits])

    @cached_property
    def workload(self) -> str:
        """The digest by which tuning records are found: that of the loops and the flags, of no version of Weft."""
        return workload_digest(KERNEL, self.text, self.flags)

    def key(self, target: Target) -> str:
        """Returns the cache key: all that the machine code depends on, of which names are no part."""
        plan = "" if self.plan is None else str(self.plan)
        return digest(self.workload, plan, self.passes, *compiler_facts(target))

    def schedule(self, target: Target, takes: Takes | None = None) -> Schedule:
        """Returns the scheduled loops, of which *takes* holds; raises `ScheduleError` where the plan is of another kernel."""
        if self.plan is not None:
            return apply_plan(self.program, self.plan)
        if self.cheapest_schedule is not None and self.choose is cheapest and takes is None:
            return self.cheapest_schedule
        return schedule_program(self.program, target, self.choose, takes)

"""One kernel: from tensor expressions to an object, through every layer of the compiler.

formulas -> loops -> schedule -> flat program -> machine code
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from time import perf_counter

from weft.codegen.llvm.compile import ObjectCode, compile_function_module, llvm_version
from weft.driver.cache import Cache, digest, source_hash
from weft.ir.expr import Var
from weft.loop.nodes import Program
from weft.loop.printer import print_program
from weft.lower.pipeline import lower
from weft.schedule.rules import schedule_program
from weft.targets.target import Target
from weft.te import Tensor, to_program

Tensors = tuple[Sequence[Tensor], Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class Request:
    """A kernel that is wanted: its name, a canonical description of what it computes, and its formulas.

    *tensors* gives the inputs and the outputs when asked; *sizes* are the symbolic sizes. The function's parameters are the
    inputs, the outputs, then the sizes.
    """

    name: str
    description: str
    tensors: Callable[[], Tensors]
    sizes: Sequence[Var] = ()

    def key(self, target: Target) -> str:
        """Returns the cache key: all that the machine code depends on."""
        return digest(self.name, self.description, target.fingerprint(), source_hash(), llvm_version())


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled kernel; the texts are there to be read: the scheduled loops, the steps that made them, the flat program."""

    name: str
    scheduled: str
    trace: str
    flat: str
    object: ObjectCode
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Returns the kernel as bytes: a line of JSON, then the object."""
        facts = {
            "name": self.name, "scheduled": self.scheduled, "trace": self.trace, "flat": self.flat,
            "messages": self.object.messages, "seconds": self.seconds,
        }  # fmt: skip
        return json.dumps(facts).encode() + b"\n" + self.object.elf

    @staticmethod
    def from_bytes(data: bytes) -> Kernel:
        """Reads what `to_bytes` made."""
        head, _, elf = data.partition(b"\n")
        facts = json.loads(head)
        code = ObjectCode(elf, tuple((int(n), str(text)) for n, text in facts["messages"]))
        texts = (facts["name"], facts["scheduled"], facts["trace"], facts["flat"])
        return Kernel(*texts, code, facts["seconds"])


def make_kernel(
    request: Request, target: Target, cache: Cache | None, pool: Executor, *, verify: bool = False
) -> Future[Kernel]:
    """Returns the kernel to come: from the cache, or scheduled and lowered here and compiled in *pool*.

    LLVM needs no interpreter lock, so that Python goes on with the next kernel meanwhile.
    """
    found = cache.get("kernel", request.key(target)) if cache is not None else None
    if found is not None:
        done: Future[Kernel] = Future()
        done.set_result(Kernel.from_bytes(found))
        return done
    start = perf_counter()
    inputs, outputs = request.tensors()
    schedule = schedule_program(to_program(inputs, outputs, request.name, request.sizes), target)
    flat = lower(schedule.program, target, verify=verify)
    lowered = _Lowered(request, str(schedule), str(schedule.trace), flat, perf_counter() - start)
    return pool.submit(lowered.emit, target, cache)


@dataclass(frozen=True, eq=False)
class _Lowered:
    """A kernel before LLVM."""

    request: Request
    scheduled: str
    trace: str
    flat: Program
    seconds: float

    def emit(self, target: Target, cache: Cache | None) -> Kernel:
        """Compiles the flat program, and keeps the result."""
        start = perf_counter()
        code = compile_function_module(self.flat, target)
        seconds = self.seconds + perf_counter() - start
        made = Kernel(self.request.name, self.scheduled, self.trace, print_program(self.flat), code, seconds)
        if cache is not None:
            cache.put("kernel", self.request.key(target), made.to_bytes())
        return made

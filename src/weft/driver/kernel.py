"""One kernel: from tensor expressions to an object, through every layer of the compiler.

formulas -> loops -> schedule -> flat program -> machine code
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter

from weft.codegen.llvm.compile import ObjectCode, assembly, compile_module
from weft.codegen.llvm.module import ModuleText, write_module
from weft.driver.cache import Cache, digest
from weft.driver.key import compiler_facts
from weft.driver.lock import Claim
from weft.driver.progress import Span
from weft.ir.expr import Var
from weft.loop.canonical import canonical_text
from weft.loop.nodes import Buffer, Program
from weft.loop.parser import parse_program
from weft.loop.printer import print_function, print_program
from weft.loop.verify import verify as verify_program
from weft.lower.expand_math import expand_math
from weft.lower.lift_workspaces import lift_workspaces, size_of
from weft.lower.manager import Report
from weft.lower.pipeline import lower
from weft.lower.serialize_loops import serialize_loops
from weft.schedule.rules import schedule_program
from weft.support.errors import LoweringError, WeftError
from weft.targets.target import Target
from weft.te import Tensor, to_program

Tensors = tuple[Sequence[Tensor], Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class Request:
    """A kernel that is wanted: its name, and its formulas.

    Whatever a model calls its kernels and the operators in them, it shares those whose loops are the same (`Kernel.named`).
    *tensors* gives the inputs and the outputs when asked; *sizes* are the symbolic sizes; *source* says which nodes of the
    user's model it is for. The function's parameters are the inputs, the outputs, then the sizes; where *may_alias*, an
    output may be in the memory of an input that is read at the output's own index only. Without *parallel*, one thread runs it.
    With *lift*, the kernel takes the memory it works in from its caller, between the outputs and the sizes (`Kernel.workspaces`).
    """

    name: str
    tensors: Callable[[], Tensors]
    sizes: Sequence[Var] = ()
    source: str = ""
    may_alias: bool = False
    parallel: bool = True
    lift: bool = False

    @cached_property
    def program(self) -> Program:
        """The loops of the formulas, before they are scheduled."""
        inputs, outputs = self.tensors()
        return to_program(inputs, outputs, self.name, self.sizes)

    def key(self, target: Target) -> str:
        """Returns the cache key: all that the machine code depends on, of which names are no part."""
        entry, *callees = self.program.functions
        loops = canonical_text(Program((replace(entry, name=""), *callees)))
        return digest(loops, self.may_alias, self.parallel, self.lift, *compiler_facts(target))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled kernel; the texts are there to be read: the scheduled loops, the steps that made them, the flat program.

    `name` is what the kernel goes by among those of its model; in the texts its function is called `symbol`.
    `workspaces` are the bytes of each buffer that it takes besides its inputs and outputs, to work in. `spans` tell when each
    step to it was done; a kernel from the cache has none.
    """

    name: str
    scheduled: str
    trace: str
    flat: str
    object: ObjectCode
    seconds: float = 0.0
    workspaces: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def symbol(self) -> str:
        """The name of the function in the texts and in the object's image."""
        return self.object.renamed[0][0] if self.object.renamed else self.name

    def named(self, name: str) -> Kernel:
        """Returns the kernel under another name; the texts and the object's image stay as they are."""
        code = replace(self.object, renamed=((self.symbol, name),))
        spans = tuple([replace(s, name=name) if s.name == self.name else s for s in self.spans])
        return replace(self, name=name, object=code, spans=spans)

    def assembly(self, target: Target) -> str:
        """Returns the kernel's machine code for *target* as text."""
        return assembly(expand_math(parse_program(self.flat), target), target)

    def to_bytes(self) -> bytes:
        """Returns the kernel as bytes: a line of JSON, then the object."""
        facts = {
            "name": self.symbol, "scheduled": self.scheduled, "trace": self.trace, "flat": self.flat,
            "messages": self.object.messages, "seconds": self.seconds, "workspaces": self.workspaces,
        }  # fmt: skip
        return json.dumps(facts).encode() + b"\n" + self.object.elf

    @staticmethod
    def from_bytes(data: bytes) -> Kernel:
        """Reads what `to_bytes` made."""
        head, _, elf = data.partition(b"\n")
        facts = json.loads(head)
        code = ObjectCode(elf, tuple((int(n), str(text)) for n, text in facts["messages"]))
        texts = (facts["name"], facts["scheduled"], facts["trace"], facts["flat"])
        return Kernel(*texts, code, facts["seconds"], tuple(facts["workspaces"]))


def make_kernel(
    request: Request, target: Target, cache: Cache | None, pool: Executor | None, *, verify: bool = False
) -> Future[Kernel]:
    """Returns the kernel to come: from the cache, or scheduled and lowered here and compiled in *pool*, or here too.

    LLVM needs no interpreter lock, so that with a pool Python goes on with the next kernel meanwhile. With *verify*, each
    program on the way is verified, so nothing is taken from the cache. Errors name the nodes of the user's model.
    """
    store = None if verify else cache
    start = perf_counter()
    with _naming(request):
        _ = request.program
    formed = Span("formulas to loops", "kernel", start, perf_counter())
    key = request.key(target) if cache is not None else ""
    found = store.get("kernel", key) if store is not None else None
    claim = store.claim("kernel", key) if store is not None and found is None else Claim()
    if store is not None and claim.waited:  # for whoever made it meanwhile
        found = store.get("kernel", key)
    if found is not None:
        claim.release()
        return _done(Kernel.from_bytes(found))
    try:
        with _naming(request):
            lowered = lower_kernel(request, target, verify=verify, formed=formed)
        emit = partial(lowered.emit, target, cache, key, claim)
        return _done(emit()) if pool is None else pool.submit(emit)
    except BaseException:
        claim.release()
        raise


def _done(kernel: Kernel) -> Future[Kernel]:
    future: Future[Kernel] = Future()
    future.set_result(kernel)
    return future


def lower_kernel(
    request: Request, target: Target, *, verify: bool = False, formed: Span | None = None
) -> LoweredKernel:
    """Schedules and lowers a kernel, and writes it as LLVM IR; *formed* tells when its loops were made, if that was before."""
    start = perf_counter()
    schedule = schedule_program(request.program, target)
    formed = formed if formed is not None else Span("formulas to loops", "kernel", start, start)
    spans = [formed, Span("schedule", "kernel", start, perf_counter())]
    scheduled = schedule.program if request.parallel else serialize_loops(schedule.program)
    if verify:
        verify_program(scheduled)
    passes: list[Report] = []

    def note(report: Report) -> None:
        passes.append(report)
        now = perf_counter()
        spans.append(Span(report.name, "pass", now - report.seconds, now, facts={"changed": report.changed}))

    flat = lower(scheduled, target, verify=verify, trace=note)
    if request.may_alias:
        flat = _allow_aliases(flat)
    readable = passes[-2].program  # before mathematical functions were expanded
    lifted: tuple[Buffer, ...] = ()
    if request.lift:
        (flat, lifted), (readable, _) = lift_workspaces(flat), lift_workspaces(readable)
    texts = print_function(scheduled.entry), str(schedule.trace), print_program(readable)
    begin = perf_counter()
    written = write_module(flat, target)
    end = perf_counter()
    spans.append(Span("write module", "kernel", begin, end))
    spans.insert(0, Span(request.name, "kernel", formed.begin, end, facts={"for": request.source}))
    workspaces = tuple([size_of(b) or 0 for b in lifted])
    return LoweredKernel(request, *texts, written, workspaces, end - formed.begin, tuple(spans))


def _allow_aliases(program: Program) -> Program:
    """Returns *program* with every function told that its buffers may share memory."""
    marked = [replace(f, annotations=(*f.annotations, ("may_alias", 1))) for f in program.functions]
    return Program(tuple(marked))


@dataclass(frozen=True, eq=False)
class LoweredKernel:
    """A kernel before LLVM: the texts of `Kernel`, and the module to compile."""

    request: Request
    scheduled: str
    trace: str
    readable: str
    text: ModuleText
    workspaces: tuple[int, ...]
    seconds: float
    spans: tuple[Span, ...]

    def emit(self, target: Target, cache: Cache | None, key: str, claim: Claim) -> Kernel:
        """Compiles the module, keeps the result as *key* in *cache*, and lets others at it."""
        with claim:
            made = self._compiled(target)
            if cache is not None:
                cache.put("kernel", key, made.to_bytes())
        return made

    def _compiled(self, target: Target) -> Kernel:
        start = perf_counter()
        with _naming(self.request):
            code = compile_module(self.text, target)
        end = perf_counter()
        facts = {"for": self.request.source, "code_bytes": len(code.elf)}
        spans = (*self.spans, Span(self.request.name, "LLVM", start, end, facts=facts))
        texts = (self.request.name, self.scheduled, self.trace, self.readable)
        return Kernel(*texts, code, self.seconds + end - start, self.workspaces, spans)


@contextmanager
def _naming(request: Request) -> Iterator[None]:
    """Turns what goes wrong while a kernel is made into an error that names the nodes it is for."""
    try:
        yield
    except MemoryError:  # no fault of the compiler's
        raise
    except Exception as error:
        raise LoweringError(
            f"no code could be made for it: {_told(error)}",
            where=request.source or request.name,
            hint="this is a bug in Weft, not in the model; opt_level=0 may get around it",
        ) from error


def _told(error: Exception) -> str:
    if not isinstance(error, WeftError):
        return f"{type(error).__name__}: {error}"
    return f"{error.where}: {error.message}" if error.where else error.message

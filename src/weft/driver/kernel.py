"""One kernel: from tensor expressions to a compiled module, through every layer of the compiler.

formulas -> loops -> schedule -> flat program -> source -> module
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Final, Protocol

from weft.codegen import Module, Source, backend_of
from weft.cost import Takes, cheapest
from weft.driver.cache.code_cache import Cache
from weft.driver.cache.lock import Claim
from weft.driver.device.lowering_trial import LoweringTrial
from weft.driver.kernel_request import KernelRequest
from weft.driver.progress import Span
from weft.loop import Buffer, Function, MayAlias, Program, parse_program, with_note
from weft.loop import verify as verify_program
from weft.lower import ProgramReport, expand_math, lift_scratch_buffers, lower, run_passes, serialize_loops, size_of
from weft.schedule import Schedule, Trace
from weft.support.errors import InputError, LoweringError, WeftError
from weft.support.knobs import Switches
from weft.support.passes import EVERYTHING, Pass
from weft.targets import Target


@dataclass(frozen=True, eq=False)
class KernelForms:
    """A kernel on its way: the scheduled loops, the steps that made them, the flat program; texts, where it is from the cache.

    Printing them takes as long as a pass does, so that it is done for whoever reads them, or keeps the kernel.
    """

    scheduled: Function | str
    trace: Trace | str
    flat: Program | str


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled kernel, and its forms on the way as texts to be read.

    `name` is the kernel's name in its model; in the texts its function is called `symbol`.
    `workspaces` are the bytes of each buffer that it takes besides its inputs and outputs, to work in. `spans` tell when each
    step to it was done; a kernel from the cache has none.
    """

    name: str
    forms: KernelForms
    module: Module
    seconds: float = 0.0
    workspaces: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()

    @cached_property
    def scheduled(self) -> str:
        """The scheduled loops."""
        return str(self.forms.scheduled)

    @cached_property
    def trace(self) -> str:
        """The steps that made the schedule."""
        return str(self.forms.trace)

    @cached_property
    def flat(self) -> str:
        """The flat program, with mathematical functions by name."""
        return str(self.forms.flat)

    @property
    def symbol(self) -> str:
        """The name of the function in the texts and in the module."""
        return self.module.renamed[0][0] if self.module.renamed else self.name

    def named(self, name: str) -> Kernel:
        """Returns the kernel under another name; the texts and the module's bytes stay as they are."""
        code = replace(self.module, renamed=((self.symbol, name),))
        spans = tuple([replace(s, name=name) if s.name == self.name else s for s in self.spans])
        return replace(self, name=name, module=code, spans=spans)

    def assembly(self, target: Target) -> str:
        """Returns the kernel's code for *target* as text: assembly, or the source where the backend writes one."""
        flat = _finish(expand_math(parse_program(self.flat), target), target)
        return backend_of(target).listing(flat, target)

    @property
    def code_bytes(self) -> int:
        """How many bytes its module has."""
        return len(self.module.data)

    def to_bytes(self) -> bytes:
        """Returns the kernel as bytes: a line of JSON, then the module's."""
        facts = {
            "name": self.symbol,
            "scheduled": self.scheduled,
            "trace": self.trace,
            "flat": self.flat,
            "kind": self.module.kind,
            "messages": self.module.messages,
            "entries": self.module.entries,
            "seconds": self.seconds,
            "workspaces": self.workspaces,
        }
        return json.dumps(facts).encode() + b"\n" + self.module.data

    @staticmethod
    def from_bytes(data: bytes) -> Kernel:
        """Returns the kernel that `to_bytes` wrote."""
        head, _, code = data.partition(b"\n")
        facts = json.loads(head)
        messages = tuple((int(n), str(text)) for n, text in facts["messages"])
        module = Module(facts["kind"], code, messages, entries=tuple(facts["entries"]))
        forms = KernelForms(facts["scheduled"], facts["trace"], facts["flat"])
        return Kernel(facts["name"], forms, module, facts["seconds"], tuple(facts["workspaces"]))


class KernelMaker(Protocol):
    """Makes kernels elsewhere."""

    def offer(self, wanted: WantedKernel) -> Future[Kernel] | None:
        """Returns the kernel to come; None where it is to be made here."""


def make_kernel(
    request: KernelRequest,
    target: Target,
    cache: Cache | None,
    pool: Executor | None,
    *,
    verify: bool = False,
    elsewhere: KernelMaker | None = None,
) -> Future[Kernel]:
    """Returns the kernel to come: from the cache, or made *elsewhere*, or scheduled and lowered here and compiled in *pool*, or
    here too.

    A backend's compiler needs no interpreter lock, so that with a pool Python goes on with the next kernel meanwhile. With
    *verify*, each program on the way is verified, so nothing is taken from the cache. Errors name the nodes of the user's model.
    """
    cache = cache if request.choose is cheapest else None  # the choices of another *choose* are not in the key
    store = None if verify else cache
    start = perf_counter()
    with naming(request):
        _ = request.program
    formed = Span("formulas to loops", "kernel", start, perf_counter())
    key = request.key(target) if cache is not None else ""
    found = store.get("kernel", key) if store is not None else None
    claim = Claim()
    if store is not None and found is None:
        claim = store.claim("kernel", key)
        found = store.get("kernel", key)  # somebody may have made it between the look and the claim
    if found is not None:
        claim.release()
        return _done(Kernel.from_bytes(found))
    wanted = WantedKernel(request, target, cache, key, claim, formed)
    coming = None if elsewhere is None else elsewhere.offer(wanted)
    return coming if coming is not None else wanted.make(pool, verify=verify)


@dataclass(frozen=True, eq=False)
class WantedKernel:
    """A kernel that is not in the cache: its request, and the claim of whoever makes it."""

    request: KernelRequest
    target: Target
    cache: Cache | None
    key: str
    claim: Claim
    formed: Span

    def make(self, pool: Executor | None, *, verify: bool = False) -> Future[Kernel]:
        """Returns the kernel to come: scheduled and lowered here, and compiled in *pool*, or here too."""
        try:
            with naming(self.request):
                lowered = lower_kernel(self.request, self.target, verify=verify, formed=self.formed)
            emit = partial(lowered.emit, self.target, self.cache, self.key, self.claim)
            return _done(emit()) if pool is None else pool.submit(emit)
        except BaseException:
            self.claim.release()
            raise

    def keep(self, made: bytes) -> Kernel:
        """Returns the kernel, made elsewhere, which it puts into the cache."""
        with self.claim:
            if self.cache is not None:
                self.cache.put("kernel", self.key, made)
        return Kernel.from_bytes(made)


def _done(kernel: Kernel) -> Future[Kernel]:
    future: Future[Kernel] = Future()
    future.set_result(kernel)
    return future


def lower_kernel(
    request: KernelRequest, target: Target, *, verify: bool = False, formed: Span | None = None
) -> LoweredKernel:
    """Schedules and lowers a kernel, and writes its source; *formed* tells when its loops were made, if that was before.

    Costs estimate the resources of a tile roughly. Where lowering refuses the cheapest, it is asked about each of the next ones.
    """
    start = perf_counter()
    formed = formed if formed is not None else Span("formulas to loops", "kernel", start, start)

    def lowered(takes: Takes | None = None) -> LoweredKernel:
        schedule = request.schedule(target, takes)
        spans = (formed, Span("schedule", "kernel", start, perf_counter()))
        return lower_scheduled(request, schedule, target, spans, verify=verify)

    try:
        return lowered()
    except LoweringError:
        if request.plan is not None or not target.has_threads:
            raise
        return lowered(LoweringTrial(lambda program: lower_scheduled(request, Schedule(program), target)))


def lower_scheduled(
    request: KernelRequest, schedule: Schedule, target: Target, before: Sequence[Span] = (), *, verify: bool = False
) -> LoweredKernel:
    """Lowers the loops of *schedule*, made for *request*, and writes their source; *before* tells when the loops were made."""
    spans, first = list(before), before[0].begin if before else perf_counter()
    scheduled = schedule.program if request.parallel else serialize_loops(schedule.program)
    if verify:
        verify_program(scheduled)
    passes: list[ProgramReport] = []

    def note(report: ProgramReport) -> None:
        passes.append(report)
        now = perf_counter()
        spans.append(Span(report.name, "pass", now - report.seconds, now, facts={"changed": report.changed}))

    switches = Switches(passes=request.passes)
    flat = lower(scheduled, target, switches, verify=verify, trace=note)
    if request.may_alias:
        flat = _allow_aliases(flat)
    readable = _before("expand_math", passes)
    lifted: tuple[Buffer, ...] = ()
    if request.lift:
        (flat, lifted), (readable, _) = lift_scratch_buffers(flat), lift_scratch_buffers(readable)
    forms = KernelForms(scheduled.entry, schedule.trace, readable)
    begin = perf_counter()
    written = backend_of(target).write(_finish(flat, target, switches), target)
    end = perf_counter()
    spans.append(Span("write module", "kernel", begin, end))
    spans.insert(0, Span(request.name, "kernel", first, end, facts={"for": request.source}))
    workspaces = tuple([size_of(b) or 0 for b in lifted])
    return LoweredKernel(request, forms, written, workspaces, end - first, tuple(spans))


def _before(name: str, passes: Sequence[ProgramReport]) -> Program:
    """Returns the program that the pass called *name* was given."""
    place = next(n for n, report in enumerate(passes) if report.name == name)
    return passes[place - 1].after


def _finish(flat: Program, target: Target, switches: Switches = EVERYTHING) -> Program:
    """Returns *flat* after the passes of the target's backend."""
    return run_passes([Pass(*p) for p in backend_of(target).passes(target)], flat, target, switches)


def _allow_aliases(program: Program) -> Program:
    """Returns *program* with every function told that its buffers may share memory."""
    marked = [replace(f, notes=with_note(f.notes, MayAlias())) for f in program.functions]
    return Program(tuple(marked))


@dataclass(frozen=True, eq=False)
class LoweredKernel:
    """A kernel before it is compiled: its forms so far, and the source to compile."""

    request: KernelRequest
    forms: KernelForms
    source: Source
    workspaces: tuple[int, ...]
    seconds: float
    spans: tuple[Span, ...]

    def emit(self, target: Target, cache: Cache | None, key: str, claim: Claim) -> Kernel:
        """Compiles the source, keeps the result as *key* in *cache*, and lets others at it."""
        with claim:
            made = self._compiled(target)
            if cache is not None:
                cache.put("kernel", key, made.to_bytes())
        return made

    def _compiled(self, target: Target) -> Kernel:
        start = perf_counter()
        with naming(self.request):
            code = backend_of(target).compile(self.source, target)
        end = perf_counter()
        facts = {"for": self.request.source, "code_bytes": len(code.data)}
        spans = (*self.spans, Span(self.request.name, "LLVM", start, end, facts=facts))
        return Kernel(self.request.name, self.forms, code, self.seconds + end - start, self.workspaces, spans)


_BUG: Final = "this is a bug in Weft, not in the model; opt_level=0 may get around it"


@contextmanager
def naming(request: KernelRequest) -> Iterator[None]:
    """Turns exceptions raised while a kernel is made into errors that name the model's nodes it is for."""
    try:
        yield
    except MemoryError:  # no fault of the compiler's
        raise
    except InputError as error:  # the target lacks something
        raise InputError(error.message, where=request.source or request.name, hint=error.hint) from error
    except Exception as error:
        raise LoweringError(
            f"no code could be made for it: {_told(error)}",
            where=request.source or request.name,
            hint="; ".join([_BUG, *([error.hint] if isinstance(error, LoweringError) and error.hint else [])]),
        ) from error


def _told(error: Exception) -> str:
    if not isinstance(error, WeftError):
        return f"{type(error).__name__}: {error}"
    return f"{error.where}: {error.message}" if error.where else error.message

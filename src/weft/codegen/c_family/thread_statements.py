"""The statements that deal with threads: their numbers, their memories, and barriers, in the words of one language.

for b in bound(0, n, thread="blockIdx.x"):           const int64_t b = get_group_id(0);
    S = alloc("shared", f32[256])                    local float S[256];
    for t in bound(0, 256, thread="threadIdx.x"):    const int64_t t = get_local_id(0);
        S[t] = ...                             ->    S[t] = ...;
        call("weft.barrier")                         barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.codegen.c_family.c_types import memory_type
from weft.codegen.c_family.dialect import StatementWriter
from weft.codegen.c_family.narrow_counters import declare_counter, is_narrow_loop
from weft.codegen.c_family.statements import COMMON, write
from weft.codegen.c_family.writer import Writer
from weft.ir import ZERO, Add, Const, Mul
from weft.loop import ATOMICS, WARP_SHUFFLE, Address, Alloc, Buffer, Call, For, Stmt, Thread, find_note, is_hint
from weft.support.dtypes import DType, f32, f64
from weft.targets import Sight, sight_of
from weft.targets.instructions import FRAGMENT_INSTRUCTIONS


@dataclass(frozen=True)
class ThreadWords:
    """A language's words for threads.

    `number` gives the number of the block or the thread along an axis, such as `blockIdx` and `x`. `shared` are the words before
    the type of memory that a block shares, with a space after them, and `own` those before the type of a thread's memory where
    threads have vectors. `barriers` are the calls that wait, by the intrinsic, and `calls` the writers of the other intrinsics
    that the language has, with `SHUFFLES` where the head of its sources has the macro `WEFT_SHUFFLE`. `dynamic` are
    the writers of memory of a block whose size a launch tells, by its scope.
    """

    number: Callable[[str, str], str]
    shared: str
    barriers: Mapping[str, str]
    own: str = ""
    calls: Mapping[str, Callable[[Writer, Call], None]] = field(default_factory=dict)
    dynamic: Mapping[str, Callable[[Writer, Buffer, str, int], None]] = field(default_factory=dict)


def thread_statements(words: ThreadWords) -> dict[type[Stmt], StatementWriter]:
    """Returns the writers of statements of a language with *words*."""
    return {
        **COMMON,
        For: lambda f, s: _for(f, s, words),
        Alloc: lambda f, s: _alloc(f, s, words),
        Call: lambda f, s: _call(f, s, words),
    }


def _for(f: Writer, s: For, words: ThreadWords) -> None:
    """Writes a loop over blocks or threads as this thread's number, any other as a loop."""
    thread = find_note(s.notes, Thread)
    if thread is None:
        COMMON[For](f, s)
        return
    kind, _, axis = thread.axis.partition(".")
    if kind not in ("blockIdx", "threadIdx") or s.begin is not ZERO:
        raise f.error(f"the loop {s.var.name} over {thread.axis} is not one over a grid from zero on")
    type_, name = declare_counter(f, s.var, narrow=is_narrow_loop(f, s))
    f.note_index(s.var, s.begin)
    f.local(name, f"const {type_} {name} = ({type_}){words.number(kind, axis)};")
    write(f, s.body)


def _alloc(f: Writer, s: Alloc, words: ThreadWords) -> None:
    """Writes memory of a block or of a thread; languages have that of a block in the outermost scope of a kernel alone."""
    size, b = s.buffer.shape[0], s.buffer
    if sight_of(b.scope) is Sight.WARP:
        raise f.error(
            f"{b.name} is in {b.scope} memory, which its accesses do not let shuffles take the place of",
            hint="have each thread store the element of its own number in the warp, and no thread load alone",
        )
    if b.rank != 1 or not isinstance(size, Const):
        raise f.error(
            f"the size of {b.name} is not one constant", hint="kernels have no memory whose size a call tells"
        )
    own = "" if f.target.has_threads else words.own
    is_shared, name = sight_of(b.scope) is Sight.BLOCK, f.declare(b)
    space = words.shared if is_shared else own
    if is_shared and f.depth > 1:
        raise f.error(f"{b.name}, which a block shares, is in a loop or a branch", hint="hoist allocations before this")
    count = max(1, int(size.value) * b.dtype.lanes)
    if b.scope in words.dynamic:
        words.dynamic[b.scope](f, b, name, count)
    else:
        f.local(name, f"{space}{memory_type(b.dtype)} {name}[{count}];")
    write(f, s.body)


def write_shuffle(f: Writer, s: Call) -> None:
    """Writes a shuffle as a call of its helper, of the integer of its bits for a type that no arithmetic has."""
    to, own, lane = s.args
    assert isinstance(to, Address)
    t = to.buffer.dtype
    kind = t if t.is_int or t in (f32, f64) else DType("uint", 8 * t.bytes)
    with f.scope():
        f.line(f"*{f.scalar(to)} = {f.helper('shuffle', kind)}(*{f.scalar(own)}, {f.scalar(lane)});")


SHUFFLES: Final = {WARP_SHUFFLE: write_shuffle}
"""The writer of shuffles, by the intrinsic."""


def write_update(f: Writer, s: Call) -> None:
    """Writes an atomic update of memory that all threads see as a call of its helper."""
    at, value = s.args
    assert isinstance(at, Address)
    t = at.buffer.dtype
    if sight_of(at.buffer.scope) is not Sight.GRID:
        raise f.error(
            f"{at.buffer.name}, which not all threads see, is updated atomically", hint="update memory of the grid"
        )
    # signed sums have the bits of unsigned ones, which may overflow
    wraps = t.is_int and ATOMICS[s.callee] in (Add, Mul)
    helper = f.helper(s.callee.removeprefix("weft.").replace(".", "_"), DType("uint", t.bits) if wraps else t)
    with f.scope():
        f.line(f"{helper}((WEFT_GLOBAL uint{t.bits}_t *){f.scalar(at)}, {f.scalar(value)});")


UPDATES: Final = dict.fromkeys(ATOMICS, write_update)
"""The writers of atomic updates, by the intrinsic."""


def products(*more: str) -> dict[str, Callable[[Writer, Call], None]]:
    """Returns the writers of products of warps, by the instruction: as calls of helpers, which are given *more* arguments."""

    def write_product(f: Writer, s: Call) -> None:
        with f.scope():
            args = [*[f.scalar(a) for a in s.args], *more]
            f.line(f"{f.helper(s.callee.partition('.')[2])}({', '.join(args)});")

    return dict.fromkeys(FRAGMENT_INSTRUCTIONS.values(), write_product)


def _call(f: Writer, s: Call, words: ThreadWords) -> None:
    if is_hint(s):
        return
    if s.callee in words.barriers:
        f.line(f"{words.barriers[s.callee]};")
    elif s.callee in words.calls:
        words.calls[s.callee](f, s)
    else:
        raise f.error(f"{f.dialect.name} has no {s.callee}", hint="lower for a target without the memory of warps")

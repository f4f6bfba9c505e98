"""Random schedule steps, one for each primitive: each is tried on loops and blocks where it makes sense, and may be refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.schedule.fuzz.choices import (
    all_loops,
    around,
    block_of,
    chain_from,
    choice,
    intermediates,
    is_assignment,
    is_kept,
    is_plain,
    is_spatial,
    length,
    makers,
    pick_block,
    pick_loop,
)

from weft.ir import Select, Var
from weft.loop import THREAD_AXES, Block, Buffer, For, Store
from weft.schedule import BlockRef, LoopRef, Schedule, blocks_in, loop_path, the_loop
from weft.schedule.cursors.loop_nest import parts_of
from weft.schedule.cursors.tree import block_path
from weft.schedule.legality.placement import read_buffers, readers, reduce_loops, written_buffers
from weft.support.dtypes import DType
from weft.targets import can_run, host
from weft.targets.instructions import TensorIntrinsic
from weft.targets.instructions.known_instructions import intrinsics_of

Move: TypeAlias = Callable[[Schedule, random.Random], None]


@dataclass(frozen=True)
class Step:
    """A way to try one primitive, and how often."""

    weight: float
    move: Move


NOTES: tuple[int | float | str, ...] = (1, 0.5, "text")
STEPS: dict[str, Step] = {}
"""The step of each primitive, by its name."""


def step_for(weight: float) -> Callable[[Move], Move]:
    """Enters the step of the primitive that the function is named after."""

    def enter(move: Move) -> Move:
        STEPS[move.__name__] = Step(weight, move)
        return move

    return enter


def _refs(loops: list[For]) -> list[LoopRef]:
    return [LoopRef(f.var) for f in loops]


def _chain(s: Schedule, r: random.Random) -> list[For]:
    """Loops directly in one another, two at least if there are any such."""
    loops = all_loops(s)
    found = chain_from(choice(r, [f for f in loops if isinstance(f.body, For)], loops))
    return found[: r.choice([2, 2, 3, 4])]


@step_for(5)
def split(s: Schedule, r: random.Random) -> None:
    factors: list[int | None] = [None, r.choice([2, 2, 3, 4, 5])]
    if r.random() < 0.2:
        factors.append(2)
    if r.random() < 0.2:
        factors.reverse()
    s.split(pick_loop(s, r, is_plain), factors)


@step_for(3)
def fuse(s: Schedule, r: random.Random) -> None:
    s.fuse(_refs(_chain(s, r)))


@step_for(5)
def reorder(s: Schedule, r: random.Random) -> None:
    some = _refs(_chain(s, r))
    s.reorder(r.sample(some, len(some)))


@step_for(2)
def tile(s: Schedule, r: random.Random) -> None:
    s.tile(_refs(_chain(s, r)[:2]), [r.choice([2, 3]), r.choice([2, 4])])


@step_for(1)
def partition(s: Schedule, r: random.Random) -> None:
    s.partition(pick_loop(s, r, is_plain), [r.choice([1, 1, 2, 3, -1, -1, -2])])


@step_for(1)
def narrow(s: Schedule, r: random.Random) -> None:
    s.narrow(pick_block(s, r))


@step_for(1)
def add_unit_loop(s: Schedule, r: random.Random) -> None:
    s.add_unit_loop(pick_block(s, r), r.choice(["u", "v", "w"]))


@step_for(4)
def parallel(s: Schedule, r: random.Random) -> None:
    s.parallel(pick_loop(s, r, is_spatial))


@step_for(2)
def vectorize(s: Schedule, r: random.Random) -> None:
    s.vectorize(pick_loop(s, r, lambda f: is_spatial(f) and length(f) is not None))


@step_for(1)
def unroll(s: Schedule, r: random.Random) -> None:
    s.unroll(pick_loop(s, r, lambda f: is_plain(f) and length(f) is not None))


@step_for(1)
def bind(s: Schedule, r: random.Random) -> None:
    s.bind(pick_loop(s, r, is_spatial), r.choice(THREAD_AXES))


@step_for(1)
def vthread(s: Schedule, r: random.Random) -> None:
    s.vthread(pick_loop(s, r, is_spatial))


@step_for(1)
def annotate(s: Schedule, r: random.Random) -> None:
    target = pick_loop(s, r) if r.random() < 0.5 else pick_block(s, r)
    s.annotate(target, r.choice(["note", "other"]), r.choice(NOTES))


@step_for(7)
def compute_at(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: is_kept(s, b))
    users = readers(s.function, block_of(s, block))
    near = [f for u in users for f in around(s, u) if all(f in around(s, v) for v in users)]
    near_or_any = LoopRef(choice(r, near, all_loops(s)).var)
    s.compute_at(block, near_or_any, align=r.choice((1, 1, 4)), guarded=r.random() < 3 / 4)


@step_for(7)
def reverse_compute_at(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: bool(makers(s, b)))
    near = [f for m in makers(s, block_of(s, block)) for f in around(s, m)]
    s.reverse_compute_at(block, LoopRef(choice(r, near, all_loops(s)).var))


@step_for(2)
def compute_inline(s: Schedule, r: random.Random) -> None:
    s.compute_inline(pick_block(s, r, lambda b: is_kept(s, b) and is_assignment(b)))


@step_for(2)
def reverse_compute_inline(s: Schedule, r: random.Random) -> None:
    s.reverse_compute_inline(
        pick_block(
            s,
            r,
            lambda b: (
                is_assignment(b)
                and any(is_assignment(m) and is_kept(s, m) and readers(s.function, m) == [b] for m in makers(s, b))
            ),
        )
    )


@step_for(2)
def compute_root(s: Schedule, r: random.Random) -> None:
    s.compute_root(pick_block(s, r, lambda b: is_kept(s, b) and any(len(blocks_in(f)) > 1 for f in around(s, b))))


def _read_name(s: Schedule, r: random.Random, block: BlockRef) -> str:
    known = [*read_buffers(block_of(s, block)), *intermediates(s)]
    return known[0].name if known and r.random() > 0.5 else r.choice(known).name if known else "none"


@step_for(1)
def cache_read(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r)
    s.cache_read(block, _read_name(s, r, block), r.choice(["local", "global"]))


@step_for(1)
def cache_write(s: Schedule, r: random.Random) -> None:
    s.cache_write(pick_block(s, r), r.choice(["local", "global"]))


def _layout(r: random.Random, rank: int) -> str:
    """A random one-to-one map: some index cut into digits, and the results in any order."""
    names = [f"i{d}" for d in range(rank)]
    made = list(names)
    if names and r.random() < 0.7:
        cut, by = r.choice(names), r.choice([2, 3, 4])
        made.remove(cut)
        made += [f"{cut} // {by}", f"{cut} % {by}"]
    return f"{', '.join(names)} -> {', '.join(r.sample(made, len(made)))}"


def _padding(r: random.Random) -> int | None:
    return r.choice([None, None, 0, 7])


def _used(b: Block, known: list[Buffer]) -> list[Buffer]:
    return [x for x in dict.fromkeys(x.buffer for x in (*b.reads, *b.writes)) if x in known]


@step_for(2)
def transform_layout(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: bool(_used(b, intermediates(s))))
    b = block_of(s, block)
    any_used = [x.buffer for x in (*b.reads, *b.writes)]
    target = choice(r, _used(b, intermediates(s)), any_used)
    s.transform_layout(block, target.name, _layout(r, target.rank), _padding(r))


@step_for(1)
def pack(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: bool(read_buffers(b)))
    known = read_buffers(block_of(s, block)) or [x.buffer for x in block_of(s, block).writes]
    source = r.choice(known)
    s.pack(block, source.name, _layout(r, source.rank), r.choice(["local", "global"]), _padding(r))


@step_for(1)
def set_scope(s: Schedule, r: random.Random) -> None:
    s.set_scope(pick_block(s, r, lambda b: is_kept(s, b)), r.choice(["local", "global"]))


@step_for(1)
def storage_align(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: is_kept(s, b))
    s.storage_align(block, r.choice([0, 0, 0, 1]), r.choice([4, 8, 16]), r.choice([0, 0, 1]))


def _shared(s: Schedule, b: Block) -> list[For]:
    """The serial loops around a block that are around others too."""
    return [f for f in around(s, b) if is_plain(f) and len(blocks_in(f)) > 1]


def _any(s: Schedule, b: Block) -> bool:
    return True


def _placed(s: Schedule, r: random.Random, wanted: Callable[[Schedule, Block], bool] = _any) -> tuple[BlockRef, For]:
    """A block and a loop around it and its consumers; the block is moved there if there is no such."""
    known = [(b, f) for b in blocks_in(s.function.body) if is_kept(s, b) and wanted(s, b) for f in _shared(s, b)]
    if known and r.random() < 0.6:
        b, f = r.choice(known)
        return BlockRef(b.name), f
    block = pick_block(s, r, lambda b: is_kept(s, b) and wanted(s, b))
    loops = [f for u in readers(s.function, block_of(s, block)) for f in around(s, u) if is_plain(f)]
    loop = choice(r, loops, all_loops(s))
    s.compute_at(block, LoopRef(loop.var))
    return block, the_loop(loop_path(s.function, LoopRef(loop.var)))


@step_for(2)
def double_buffer(s: Schedule, r: random.Random) -> None:
    block, loop = _placed(s, r)
    s.double_buffer(block, LoopRef(loop.var))


def _is_window(s: Schedule, b: Block) -> bool:
    """Whether consumers of *b* read it at several places, or at sums of axes."""
    read = [x for u in readers(s.function, b) for x in u.reads if x.buffer in written_buffers(b)]
    return any(
        not isinstance(x.ranges[d].begin, Var) or x.ranges[d] is not read[0].ranges[d]
        for x in read
        for d in range(len(x.ranges))
    )


@step_for(4)
def rolling_buffer(s: Schedule, r: random.Random) -> None:
    block, loop = _placed(s, r, _is_window)
    s.rolling_buffer(block, LoopRef(loop.var))


@step_for(2)
def software_pipeline(s: Schedule, r: random.Random) -> None:
    loop = _placed(s, r)[1]
    count = len(parts_of(the_loop(loop_path(s.function, LoopRef(loop.var)))))
    s.software_pipeline(LoopRef(loop.var), sorted([0, 1, *[r.choice([0, 1, 2]) for _ in range(count - 2)]]))


@step_for(1)
def prefetch(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: bool(b.reads))
    loops = around(s, block_of(s, block)) or all_loops(s)
    s.prefetch(LoopRef(r.choice(loops).var), _read_name(s, r, block), r.choice([1, 2, 3]))


def _reduction(s: Schedule, r: random.Random) -> tuple[BlockRef, list[For]]:
    """A block that starts a reduction, and the loops that it runs over."""
    block = pick_block(s, r, lambda b: b.init is not None)
    return block, reduce_loops(block_path(s.function, block))


@step_for(3)
def decompose_reduction(s: Schedule, r: random.Random) -> None:
    block, reduced = _reduction(s, r)
    loops = around(s, block_of(s, block))
    first = next((n for n, f in enumerate(loops) if f in reduced), 0)
    s.decompose_reduction(block, LoopRef(choice(r, loops[: first + 1], all_loops(s)).var))


@step_for(6)
def skip_zeros(s: Schedule, r: random.Random) -> None:
    """Tries it on what reads padding, with its sums started and the padding inlined first; now and then as things stand."""
    block = pick_block(s, r, lambda b: any(map(_pads, makers(s, b))))
    if r.random() > 0.1:
        for m in makers(s, block_of(s, block)):
            s.compute_inline(BlockRef(m.name))
        first = reduce_loops(block_path(s.function, block))[:1]
        s.decompose_reduction(block, LoopRef(choice(r, first, all_loops(s)).var))
    s.skip_zeros(block)


def _pads(b: Block) -> bool:
    return isinstance(b.body, Store) and isinstance(b.body.value, Select)


@step_for(2)
def rfactor(s: Schedule, r: random.Random) -> None:
    block, reduced = _reduction(s, r)
    s.rfactor(block, LoopRef(choice(r, reduced, all_loops(s)).var))


@step_for(1)
def cross_thread_reduce(s: Schedule, r: random.Random) -> None:
    block, reduced = _reduction(s, r)
    axis = r.choice(["threadIdx.x", "threadIdx.y"])
    s.cross_thread_reduce(block, LoopRef(choice(r, reduced, all_loops(s)).var), axis)


@step_for(1)
def pad_einsum(s: Schedule, r: random.Random) -> None:
    block = pick_block(s, r, lambda b: b.init is not None and all(isinstance(e, Var) for e in b.bindings))
    s.pad_einsum(block, [r.choice([1, 2, 4, 5]) for _ in block_of(s, block).axes])


@step_for(1)
def blockize(s: Schedule, r: random.Random) -> None:
    s.blockize(pick_loop(s, r, lambda f: is_plain(f) and len(blocks_in(f)) == 1))


INSTRUCTIONS: tuple[TensorIntrinsic, ...] = intrinsics_of(host()) if can_run(host()) else ()
"""Those of the machine that the tests run on."""
_KNOWN = {i.name for i in INSTRUCTIONS}


def _types(parts: Sequence[Buffer | Var]) -> list[DType]:
    """The types of the buffers C, A and B of a product, by name."""
    return [p.dtype for p in sorted(parts, key=lambda p: p.name) if isinstance(p, Buffer)]


def _fitting(s: Schedule, b: Block) -> list[TensorIntrinsic]:
    """The dot products of the types and sizes of a block that is a matrix product."""
    loops = around(s, b)
    read = read_buffers(b)
    if b.init is None or len(loops) != 3 or len(read) != 2 or sorted(x.name for x in read) != ["A", "B"]:
        return []
    dots = [
        i
        for i in INSTRUCTIONS
        if i.dot is not None and _types(i.semantics.params) == _types([b.writes[0].buffer, *read])
    ]
    sizes = [length(f) or 0 for f in loops[1:]]
    return [i for i in dots if all(n % by == 0 for n, by in zip(sizes, _shape(i), strict=True))]


def _shape(i: TensorIntrinsic) -> list[int]:
    """The columns of a dot product, and how many elements of each it takes at once."""
    assert i.dot is not None
    return [i.dot.lanes, i.dot.group]


@step_for(4)
def tensorize(s: Schedule, r: random.Random) -> None:
    """Tries an instruction after what it needs; now and then as things stand."""
    if r.random() < 0.03:
        s.tensorize(pick_loop(s, r), r.choice(sorted(_KNOWN)))
        return
    block = pick_block(s, r, lambda b: bool(_fitting(s, b)))
    dots = _fitting(s, block_of(s, block))
    dot = choice(r, dots, dots)
    columns, group = _shape(dot)
    _prepare_product(s, block, columns, group, r)
    s.tensorize(LoopRef(around(s, block_of(s, block))[-2].var), dot.name)


def _prepare_product(s: Schedule, block: BlockRef, columns: int, group: int, r: random.Random) -> None:
    """Tiles, packs and starts a product as dot products want it."""
    i, j, k = _refs(around(s, block_of(s, block)))
    j0, j1 = s.split(j, [None, columns])
    k0, k1 = s.split(k, [None, group])
    s.reorder([i, j0, k0, j1, k1])
    source = next(b for b in read_buffers(block_of(s, block)) if b.name == "B")
    copy = s.pack(block, source.name, f"k, j -> j // {columns}, k // {group}, j % {columns}, k % {group}", "local")
    if r.random() < 0.5:
        s.decompose_reduction(block, k0)
    short = f"interleave_{source.dtype}_{columns}x{group}"
    if r.random() < 0.3 and short in _KNOWN:
        s.tensorize(_refs(around(s, block_of(s, copy)))[2], short)


@step_for(2)
def fetch_ahead(s: Schedule, r: random.Random) -> None:
    block, loop = _placed(s, r)
    s.fetch_ahead(block, LoopRef(loop.var), r.choice([2, 3, 4]), r.choice([1, 2]))

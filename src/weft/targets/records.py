"""The records that a target consists of: its instructions, its core, its caches, its grid of threads, its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Isa:
    """An instruction set, and the vectors that it has.

    `triple`, `cpu` and `features` are LLVM's names (features with their signs, sorted); `language` is set instead where code is
    source text for the compiler of whatever machine runs it. `native` names the functions of `ir.expr.pure_functions` that the
    machine computes itself; all others are expanded before code generation. `masked_memory` tells whether vectors are loaded
    and stored under a mask, `mask_registers` whether masks have registers of their own, as in AVX-512, so that they take none of
    those for vectors and no instructions to make. Lanes may access memory under conditions of their own, and anywhere, where
    there are `lane_conditions`. Within a part of a vector, `shuffle_bytes` long, and of whole parts, shuffles are one cheap
    instruction. A vector has at most `longest_vector` lanes, where the target's language sets a limit. `missing_types` are the
    names of the types that the machine does not compute with.
    """

    triple: str = ""
    cpu: str = ""
    features: tuple[str, ...] = ()
    vector_bits: int = 32
    vector_registers: int = 16
    fma: bool = False
    masked_memory: bool = False
    mask_registers: bool = False
    lane_conditions: bool = True
    shuffle_bytes: int = 16
    longest_vector: int | None = None
    native: frozenset[str] = frozenset()
    language: str = ""
    missing_types: frozenset[str] = frozenset()

    @property
    def machine(self) -> str:
        """The architecture, such as `x86_64`, as artifacts and the runtime call it; empty for no particular one."""
        return self.triple.partition("-")[0]


@dataclass(frozen=True)
class Core:
    """How fast one core computes, and how it reads ahead. A vector is one of `Isa.vector_bits`.

    `tune` is LLVM's name for the processor whose timing is assumed. In each cycle a core starts `issue_width` instructions,
    among them `fma_per_cycle` multiply-adds of vectors and `loads_per_cycle` loads. `fma_latency` is the cycles from one
    multiply-add, or addition, to the next that needs its result; `forwarding_latency` is those that are added where the result
    goes through memory, stored and loaded again. `decoded_instructions` is the capacity of the cache of decoded instructions
    (micro-op cache); of longer loops `decode_rate` instructions are decoded in a cycle, again and again.

    `half_rate_wide` tells that a vector takes both of the core's units, so that one of half the width costs half as much.
    `broadcast_slowdown` is how many times as long multiply-adds take of which each reads an element of its own, broadcast to a
    vector: more than one where loads are then as many as the core can do.

    `bf16_dot_cycles` are the multiply-adds of vectors that a dot product of pairs of bf16 takes as long as, where the core has
    an instruction for it.

    `read_ahead` is the prefetch distance in bytes for a long sequential read, 0 where the machine needs no software prefetch;
    `read_ahead_uses` is how often the data must be used for that to pay. `fork_cycles` are those that a parallel
    loop costs the core that begins it, beside its iterations, and `wake_cycles` those before another core takes part in it.
    """

    tune: str = "generic"
    fma_per_cycle: int = 1
    fma_latency: int = 4
    loads_per_cycle: float = 2
    forwarding_latency: int = 5
    issue_width: int = 6
    decoded_instructions: int = 4000
    decode_rate: float = 2.0
    half_rate_wide: bool = False
    broadcast_slowdown: float = 1.0
    bf16_dot_cycles: float = 1.0
    read_ahead: int = 0
    read_ahead_uses: int = 1
    fork_cycles: int = 2048
    wake_cycles: int = 8192


@dataclass(frozen=True)
class Caches:
    """The data caches and memory of one core: sizes in bytes, speeds in bytes that one core reads in a cycle.

    `line` is the cache line; `page` is a page of memory, beyond which hardware prefetchers do not read. Addresses a
    multiple of `set_period` apart share a set of the first level: its sets times its line. Pieces of rows far apart, which no
    prefetcher follows, are read from the second level at `scattered_part` of its speed.
    """

    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    line: int = 64
    page: int = 4096
    set_period: int = 4096
    l2_speed: float = 48.0
    scattered_part: float = 0.3
    l3_speed: float = 24.0
    memory_speed: float = 8.0


RESERVED_BYTES: Final = 1 << 10
"""Bytes of shared memory that each block of threads takes of its multiprocessor, beside its own."""


@dataclass(frozen=True)
class Grid:
    """How a machine runs the threads of a grid, where it has one.

    `warp` threads run in step and touch memory together: global memory in sectors of `sector` bytes, shared memory in `banks`
    banks, each of which gives one word of `bank_bytes` bytes at a time. A block has at most `block` threads.

    A thread loads or stores at most `access_bits` bits at once, of elements side by side.

    `index_bits` are those of the integers that the machine computes indices with fast: of 32, indices that are proven to fit are
    narrowed. A kernel takes at most `buffers` buffers, each of at most `buffer_bytes` bytes; None is no limit. A longer one of a
    known size is several of them.

    Threads update one number of 32 bits at once by atomic operations, and one of 64 where `atomic_bits` says so.

    Blocks run on `multiprocessors`, several at once on each: as many as its `threads`, `registers` of 32 bits, and
    `shared_bytes` of shared memory allow. It begins multiply-adds of float32 for `lanes` threads in a cycle; where warps multiply
    matrices together, those of 16 bits are `products` times as fast.
    """

    warp: int = 32
    sector: int = 32
    banks: int = 32
    bank_bytes: int = 4
    block: int = 1024
    access_bits: int = 128
    index_bits: int = 64
    atomic_bits: int = 32
    buffer_bytes: int | None = None
    buffers: int | None = None
    multiprocessors: int = 32
    threads: int = 1536
    registers: int = 65536
    shared_bytes: int = 100 << 10
    lanes: int = 128
    products: float = 16.0


@dataclass(frozen=True)
class Unit:
    """A unit of a machine that runs instructions of its own, in their order, beside the other units (decoupled access-execute).

    It runs the tensor instructions named in `instructions`, and plain assignments to memory of the scopes that it `fills`, or
    from memory of those that it `empties`; each is run by the first unit of the target that can. Units synchronise through
    tokens, see `loop.intrinsics`.
    """

    name: str
    instructions: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    empties: tuple[str, ...] = ()

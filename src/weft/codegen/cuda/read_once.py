"""The buffers of which a kernel reads each element once, as far as their indices tell.

    for i in bound(0, 4096, thread="blockIdx.x"):
        for t in bound(0, 128, thread="threadIdx.x"):
            for k in range(0, 8):
                ... = x[ramp(i * 4096 + k * 512 + t * 4, 1, 4)]        of x, since the index moves with all loops
                ... = w[ramp(k * 512 + t * 4, 1, 4)]                   not of w, which all blocks read

There is one load of such a buffer, whose index moves with each loop around it. What is read once need not stay in the first level
of cache, where it takes the place of what is read again; the second level is left to other kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from weft.ir import Expr, Var, free_vars, post_order
from weft.loop import Address, Buffer, For, Function, Let, Load, Stmt, own_exprs, stores, sub_statements

_LETTERS: Final = {"float4": ("f", "f32"), "int4": ("r", "s32"), "uint4": ("r", "u32")}


def _loading(kind: str, letter: str, words: str) -> str:
    places = ", ".join([f'"={letter}"(y.{n})' for n in "xyzw"])
    code = f'asm("ld.global.L1::no_allocate.v4.{words} {{%0, %1, %2, %3}}, [%4];" : {places} : "l"(at));'
    return f"static __device__ inline {kind} weft_once(const {kind} *at) {{ {kind} y; {code} return y; }}"


LOAD_ONCE: Final = "\n".join([_loading(kind, *how) for kind, how in _LETTERS.items()])
"""The loads of vectors of four words, for the head of a source."""


def load_once(kind: str, place: str) -> str:
    """Returns a load of what is read once; shorter vectors are loaded as all others."""
    return f"weft_once({place})" if kind in _LETTERS else f"*{place}"


def buffers_read_once(kernel: Function) -> frozenset[Buffer]:
    """Returns the parameters of a kernel that it reads once."""
    found: Counter[Buffer] = Counter()
    others = {s.buffer for s in stores(kernel.body)}
    stack: list[tuple[Stmt, frozenset[Var], Mapping[Var, set[Var]]]] = [(kernel.body, frozenset(), {})]
    while stack:
        s, loops, values = stack.pop()
        for n in [n for e in own_exprs(s) for n in post_order(e) if isinstance(n, Load | Address)]:
            found[n.buffer] += 1
            if isinstance(n, Address) or not loops <= _moved_by(n.indices, values):
                others.add(n.buffer)
        if isinstance(s, Let):
            values = {**values, s.var: _moved_by((s.value,), values)}
        inner = loops | {s.var} if isinstance(s, For) else loops
        stack += [(part, inner, values) for part in sub_statements(s)]
    return frozenset([p for p in kernel.params if isinstance(p, Buffer) and found[p] == 1 and p not in others])


def _moved_by(indices: tuple[Expr, ...], values: Mapping[Var, set[Var]]) -> set[Var]:
    """Returns the variables of loops that *indices* depend on, given those that others depend on."""
    return {v for e in indices for x in free_vars(e) for v in values.get(x, {x})}

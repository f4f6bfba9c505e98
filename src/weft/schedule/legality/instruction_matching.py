"""Proving that a block computes a tensor instruction's semantics, and finding the instruction's operands in its buffers.

The two must be the same but for names, the order of loops, the order of the operands of commutative operators, and where
operands lie: each index of an operand may be any one index of the block's buffer, at a constant distance per step, unless the
instruction asks for certain strides.

    C[vi] + i32(A[vk]) * i32(B[vi, vk])                                     the instruction
    C[r, 16*t + j] + i32(A[r, 4*s + k]) * i32(B[t, s, j, k])                the block, r, t and s outside: vi = j, vk = k
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NoReturn

from weft.ir import Binary, Bounds, Const, Expr, Var, free_vars, index, linear_terms, simplify, substitute
from weft.loop import Block, Buffer, For, Load, Store
from weft.targets.instructions import ORDINARY, TensorIntrinsic


class Mismatch(Exception):
    """The block does not compute the instruction; the message says where they differ, *depth* how far they agree."""

    def __init__(self, message: str, depth: int) -> None:
        super().__init__(message)
        self.depth = depth


@dataclass(frozen=True, slots=True)
class Operand:
    """Where an operand is: element `[e0, e1, ...]` at index `base[d] + sum(step * e)` over the `(d, step)` of each e."""

    buffer: Buffer
    base: tuple[Expr, ...]
    dims: tuple[tuple[int, int], ...]

    def at(self, indices: Sequence[Expr], bounds: Bounds) -> tuple[Expr, ...]:
        """Returns the indices of an element of the operand in the buffer."""
        made = list(self.base)
        for (d, step), i in zip(self.dims, indices, strict=True):
            made[d] = made[d] + i * index(step) if step != 1 else i + made[d]
        return tuple([simplify(i, bounds) for i in made])


@dataclass(frozen=True)
class Match:
    """The binding of an instruction's parameters in a block: operands, and the values of scalars."""

    operands: dict[Buffer, Operand] = field(default_factory=dict)
    scalars: dict[Var, Expr] = field(default_factory=dict)

    def copy(self) -> Match:
        """Returns a match that can be extended without changing this one."""
        return Match(dict(self.operands), dict(self.scalars))


@dataclass(frozen=True, slots=True)
class BlockNest:
    """Loops around an assignment, in terms of which it is written; each loop with the kinds of the axes bound to it."""

    loops: tuple[For, ...]
    kinds: tuple[str, ...]
    store: Store

    def describe(self) -> str:
        """Returns the loops in words."""
        return ", ".join([f"{f.var.name}: {f.extent} ({k})" for f, k in zip(self.loops, self.kinds, strict=True)])


def nest_of(loops: Sequence[For], block: Block, bounds: Bounds) -> BlockNest | None:
    """Returns the assignment in *block* in terms of *loops*, those around it; None for a block of another form."""
    store = block.body
    if not isinstance(store, Store) or store.mask is not None:
        return None
    values = dict(zip([a.var for a in block.axes], block.bindings, strict=True))
    used = [{v for v in values if f.var in free_vars(values[v])} for f in loops]
    axis_kinds = {a.var: a.kind for a in block.axes}
    kinds = ["+".join(sorted({str(axis_kinds[v]) for v in vs})) or "unused" for vs in used]
    made = substitute(store, values)
    where = tuple([simplify(i, bounds) for i in made.indices])
    return BlockNest(tuple(loops), tuple(kinds), Store(made.buffer, where, made.value, None))


def match(intrinsic: TensorIntrinsic, given: BlockNest, bounds: Bounds) -> Match:
    """Returns the binding of the parameters of *intrinsic* in *given*; raises `Mismatch` where the two differ.

    *bounds* has the ranges of the loops of *given* and of all other variables in it.
    """
    wanted = nest_of(intrinsic.loops, intrinsic.block, bounds)
    if wanted is None:
        raise Mismatch("it is no single assignment", 0)
    best: Mismatch | None = None
    for loops in _pairings(wanted, given):
        try:
            return _Matching(intrinsic, wanted, given, loops, bounds).run()
        except Mismatch as e:
            best = e if best is None or e.depth > best.depth else best
    raise best or Mismatch(f"it runs over {wanted.describe()}, the block over {given.describe()}", 0)


def _pairings(wanted: BlockNest, given: BlockNest) -> Iterator[dict[Var, Var]]:
    """Yields the ways to pair loops of one extent and kind."""
    if len(wanted.loops) != len(given.loops):
        return
    for order in permutations(range(len(given.loops))):
        pairs = [(wanted.loops[n], given.loops[m]) for n, m in enumerate(order)]
        alike = all(w.extent is g.extent for w, g in pairs)
        if alike and all(wanted.kinds[n] == given.kinds[m] for n, m in enumerate(order)):
            yield {w.var: g.var for w, g in pairs}


class _Matching:
    """One attempt at a match, for one pairing of the loops."""

    def __init__(
        self, intrinsic: TensorIntrinsic, wanted: BlockNest, given: BlockNest, loops: Mapping[Var, Var], bounds: Bounds
    ) -> None:
        self.name = intrinsic.name
        self.wanted, self.given = wanted, given
        self.loops = dict(loops)
        self.inner = list(loops.values())
        self.bounds = bounds
        self.params = {p for p in intrinsic.semantics.params if isinstance(p, Buffer)}
        self.found = Match()

    def run(self) -> Match:
        """Matches the assignments, then checks the conditions on the operands together."""
        w, g = self.wanted.store, self.given.store
        self.element(w.buffer, w.indices, g.buffer, g.indices)
        self.value(w.value, g.value)
        result = self.found.operands[w.buffer]
        for p, o in self.found.operands.items():
            if p is not w.buffer and o.buffer is result.buffer:
                self.fail(f"the operands {p.name} and {w.buffer.name} are both in {o.buffer.name}")
        return self.found

    def fail(self, message: str) -> NoReturn:
        """Raises the mismatch, with the number of nodes that agreed."""
        raise Mismatch(message, len(self.found.operands))

    def value(self, w: Expr, g: Expr) -> None:
        """Matches two expressions."""
        if isinstance(w, Load) and w.buffer in self.params:
            if not isinstance(g, Load):
                self.fail(f"it reads {w.buffer.name}, where the block has `{g}`")
            self.element(w.buffer, w.indices, g.buffer, g.indices)
            return
        self.check(w, g)
        if isinstance(w, Binary) and isinstance(g, Binary):
            self.operands(w, g)
            return
        for a, b in zip(w.children(), g.children(), strict=True):
            if isinstance(a, Expr) and isinstance(b, Expr):
                self.value(a, b)

    def check(self, w: Expr, g: Expr) -> None:
        """Refuses two nodes that differ, their operands aside."""
        if isinstance(w, Var):
            same = self.loops.get(w, w) is g
        else:
            kids = g.children()
            same = type(w) is type(g) and len(kids) == len(w.children()) and w.rebuild(kids) is g
        if not same:
            self.fail(f"it computes `{w}`, where the block has `{g}`")

    def operands(self, w: Binary, g: Binary) -> None:
        """Matches the operands of a binary operator, in either order if it is commutative."""
        before = self.found
        orders = [(g.a, g.b), (g.b, g.a)] if w.commutative else [(g.a, g.b)]
        best: Mismatch | None = None
        for a, b in orders:
            self.found = before.copy()
            try:
                self.value(w.a, a)
                self.value(w.b, b)
                return
            except Mismatch as e:
                best = e if best is None or e.depth > best.depth else best
        if best is not None:
            raise best

    def element(self, p: Buffer, wanted: Sequence[Expr], b: Buffer, given: Sequence[Expr]) -> None:
        """Matches an access to the parameter *p* with one to the buffer *b*."""
        known = self.found.operands.get(p)
        if p.dtype is not b.dtype:
            self.fail(f"the operand {p.name} is {p.dtype}, but the block's {b.name} is {b.dtype}")
        if p.scope != b.scope and not (p.scope == "global" and b.scope in ORDINARY):
            self.fail(f'the operand {p.name} is in the scope "{p.scope}", but the block\'s {b.name} in "{b.scope}"')
        at = [simplify(substitute(i, self.loops), self.bounds) for i in wanted]
        where = [simplify(i, self.bounds) for i in given]
        if known is None:
            self.found.operands[p] = self.located(p, at, b, where)
        elif known.buffer is not b or known.at(at, self.bounds) != tuple(where):
            here, there = Load(b, tuple(where)), Load(known.buffer, known.at(at, self.bounds))
            self.fail(f"the operand {p.name} is `{there}` in one place and `{here}` in another")

    def located(self, p: Buffer, wanted: Sequence[Expr], b: Buffer, given: Sequence[Expr]) -> Operand:
        """Finds where the operand *p* is in *b*, and checks its strides."""
        terms = [self.terms(i, b) for i in given]
        dims: list[tuple[int, int]] = []
        for n, i in enumerate(wanted):
            dims.append(self.dimension(p, n, self.terms(i, p)[0], b, given, terms))
        for d, (steps, _) in enumerate(terms):
            moved = {
                v: k * self.terms(wanted[n], p)[0][v]
                for n, (to, k) in enumerate(dims)
                if to == d
                for v in self.terms(wanted[n], p)[0]
            }
            if moved != steps:
                extra = next(v for v in {**steps, **moved} if steps.get(v) != moved.get(v))
                self.fail(
                    f"the index `{given[d]}` of the block's {b.name} moves by {steps.get(extra, 0)} with {extra.name},"
                    f" the operand {p.name} by {moved.get(extra, 0)}"
                )
        self.strides(p, dims, b)
        return Operand(b, tuple([rest for _, rest in terms]), tuple(dims))

    def terms(self, i: Expr, b: Buffer) -> tuple[dict[Var, int], Expr]:
        """Returns how far an index moves with each loop inside, and the rest of it."""
        found = linear_terms(i, self.inner)
        if found is None or not all(isinstance(c, Const) for c in found[0].values()):
            self.fail(f"the index `{i}` of the block's {b.name} is not linear in its loops")
        steps = {v: int(c.value) for v, c in found[0].items() if isinstance(c, Const)}
        return steps, simplify(found[1], self.bounds)

    def dimension(
        self,
        p: Buffer,
        n: int,
        wanted: dict[Var, int],
        b: Buffer,
        given: Sequence[Expr],
        terms: Sequence[tuple[dict[Var, int], Expr]],
    ) -> tuple[int, int]:
        """Returns the dimension of *b* that moves with dimension *n* of *p*, and by how much."""
        if len(wanted) != 1 or set(wanted.values()) != {1}:
            self.fail(f"index {n} of its own operand {p.name} is not one of its loops")
        (v,) = wanted
        moving = [d for d, (steps, _) in enumerate(terms) if v in steps]
        if len(moving) != 1:
            where = Load(b, tuple(given))
            how = "does not move" if not moving else "moves in more than one index"
            self.fail(f"index {n} of the operand {p.name} moves with {v.name}, but the block's `{where}` {how} with it")
        return moving[0], terms[moving[0]][0][v]

    def strides(self, p: Buffer, dims: Sequence[tuple[int, int]], b: Buffer) -> None:
        """Checks the strides that *p* asks for; those that are parameters take the operand's."""
        if p.strides is None:
            return
        steps = b.row_major_strides()
        have = [simplify(steps[d] * index(k)) for d, k in dims]
        for wanted, found in zip(p.strides, have, strict=True):
            if isinstance(wanted, Var):
                wanted = self.found.scalars.setdefault(wanted, found)
            if wanted is not found:
                asked, shown = (", ".join([str(s) for s in x]) for x in (p.strides, have))
                self.fail(
                    f"the operand {p.name} has strides ({asked}), but the block's {b.name} has ({shown}): pack it first"
                )

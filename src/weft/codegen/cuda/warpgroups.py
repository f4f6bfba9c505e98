"""Forms warpgroup instructions (`wgmma`) from the fragment products of the threads of four warps.

    for k in range(0, 8, retained=1):                     for k in range(0, 8):
        ...                                                   ...
        for step in unrolled(0, 4):                           call("cuda.group.begin")
            for j in unrolled(0, 32):                ->       for step in unrolled(0, 4):
                call("cuda.wgmma_f16", P.at(4 * j), ...)          call("cuda.group.product_f16", P.at(0), ..., 256, ...)
        ...                                                   call("cuda.group.commit")
                                                              ...
                                                              call("cuda.group.wait", 1, ...)
                                                          call("cuda.group.wait", 0, ...)

The instructions are asynchronous: their operands may be overwritten once threads have waited for them, and a barrier later.
A loop tells how long it retains the operands of an iteration (`Retained`). Products whose threads, sums or factors are not those
of an instruction are refused; so are other accesses of swizzled memory, which lies in another order than it is indexed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.codegen.c_family.check_fragments import Around, placed_statements, product_error
from weft.codegen.cuda.async_copies import SWIZZLED_SCOPE
from weft.codegen.cuda.group_products import BEGIN, COMMIT, GROUP_CALLEES, WAIT, product_of
from weft.ir import ONE, ZERO, Bounds, Const, Expr, Ramp, Var, index, known_divisor, prove, simplify, substitute
from weft.loop import (
    ASYNC_COPY,
    ASYNC_WAIT,
    Address,
    Buffer,
    Call,
    For,
    Function,
    Kernel,
    LoopKind,
    Program,
    Retained,
    Seq,
    Stmt,
    Store,
    find_note,
    loads,
    map_stmts,
    own_exprs,
    seq,
    statements,
    without_notes,
)
from weft.support.errors import LoweringError
from weft.targets import Target
from weft.targets.instructions import (
    COPY_BYTES,
    FRAGMENT,
    GROUP_COLUMNS,
    GROUP_INSTRUCTIONS,
    REGISTER_GROUP_INSTRUCTIONS,
    SWIZZLED_BYTES,
    SWIZZLED_ROWS,
    WARPS_OF_GROUP,
    terms_of,
)

_IN_REGISTERS = frozenset(REGISTER_GROUP_INSTRUCTIONS.values())
_TYPES = {c: t for made in (GROUP_INSTRUCTIONS, REGISTER_GROUP_INSTRUCTIONS) for t, c in made.items()}
_KNOWN = {*_TYPES, ASYNC_COPY, ASYNC_WAIT}


def form_warpgroups(program: Program, target: Target) -> Program:
    """Returns *program* with warpgroup instructions; raises `LoweringError` for products that can't form one."""
    made = [f if find_note(f.notes, Kernel) is None else _formed(f) for f in program.functions]
    return program if tuple(made) == program.functions else Program(tuple(made))


def _formed(kernel: Function) -> Function:
    for s in statements(kernel.body):
        _check_access(kernel, s)
    products = _products(kernel)
    if not products:
        return kernel
    body = map_stmts(map_stmts(kernel.body, products.get), _awaited)
    left = next((s for s in statements(body) if isinstance(s, Call) and s.callee in _TYPES), None)
    if left is not None:
        raise product_error(kernel, left, "is not made for all columns of its sums, one after another")
    return kernel.with_body(body)


def _check_access(kernel: Function, s: Stmt) -> None:
    """Refuses accesses to swizzled memory other than copies to it and warpgroup products."""
    found = [x.buffer for e in own_exprs(s) for x in loads(e)]
    found += [s.buffer] if isinstance(s, Store) and not _is_piece(s) else []
    if isinstance(s, Call) and s.callee not in _KNOWN:
        found += [a.buffer for a in s.args if isinstance(a, Address)]
    for b in found:
        if b.scope == SWIZZLED_SCOPE:
            raise LoweringError(
                f"{b.name} is in swizzled memory, which threads copy to in pieces of 4, 8 or 16 bytes, and products alone read",
                where=kernel.name,
                hint="vectorize the copies to it, or use shared memory",
            )


def _is_piece(s: Store) -> bool:
    """Tells whether *s* stores a whole vector of 4, 8 or 16 bytes, which swizzling moves as a whole."""
    at, dtype = s.indices[0], s.value.dtype
    return (
        len(s.indices) == 1
        and s.mask is None
        and s.buffer.dtype.lanes == 1
        and s.buffer.dtype.bytes * dtype.lanes in COPY_BYTES
        and isinstance(at, Ramp)
        and at.stride is ONE
        and known_divisor(at.base) % dtype.lanes == 0
    )


def _products(kernel: Function) -> dict[Stmt, Stmt]:
    """Returns the warpgroup instruction of each loop over columns."""
    found: dict[Stmt, Stmt] = {}
    for s, around, bounds in placed_statements(kernel):
        if isinstance(s, For) and isinstance(s.body, Call) and s.body.callee in _TYPES:
            found[s] = _Group(kernel, s, s.body, around, bounds).made()
    return found


@dataclass(frozen=True, eq=False)
class _Group:
    """The products of one loop over columns, and their context."""

    kernel: Function
    loop: For
    call: Call
    around: Around
    bounds: Bounds

    def made(self) -> Call:
        """Returns the instruction; raises `LoweringError` if the products do not form one."""
        sums, left, right, *numbers = self.call.args
        assert isinstance(sums, Address)
        assert isinstance(left, Address)
        assert isinstance(right, Address)
        strides = [int(n.value) if isinstance(n, Const) else 0 for n in numbers]
        self.check_threads()
        self.check_sums(sums, strides[0])
        in_registers = self.call.callee in _IN_REGISTERS
        first = left.indices[0] if in_registers else self.left_rows(left, strides[1:3])
        columns, across, apart = self.right_columns(right, strides[3:])
        facts = (self.columns, int(across), apart * right.buffer.dtype.bytes)
        places = (Address(sums.buffer, (ZERO,)), Address(left.buffer, (first,)), Address(right.buffer, (columns,)))
        return Call(
            product_of(_TYPES[self.call.callee], in_registers=in_registers), (*places, *[index(n) for n in facts])
        )

    @property
    def count(self) -> int:
        """The fragments along the columns."""
        return int(self.loop.extent.value) if isinstance(self.loop.extent, Const) and self.loop.begin is ZERO else 0

    @property
    def columns(self) -> int:
        """The columns."""
        return self.count * FRAGMENT.columns

    def check_sums(self, sums: Address, stride: int) -> None:
        """Refuses sums other than all of a thread's, in the order of an instruction."""
        self.require(self.columns in GROUP_COLUMNS, f"is made for {self.columns} columns, not {GROUP_COLUMNS}")
        size = FRAGMENT.halves * FRAGMENT.pairs
        exact = all(self.at(sums, j) is index(j * size) for j in range(self.count))
        self.require(stride == FRAGMENT.pairs and exact, "adds to sums that are not all those of a thread")

    def left_rows(self, left: Address, strides: Sequence[int]) -> Expr:
        """Returns where the rows of a group begin in the left factor."""
        row = SWIZZLED_BYTES // left.buffer.dtype.bytes
        told = "has a left factor whose rows are not 8 rows of swizzled memory apart"
        self.require(list(strides) == [SWIZZLED_ROWS * row, 1], told)
        y, z = [self.around.threads[axis].var for axis in ("threadIdx.y", "threadIdx.z")]
        first = self.at(left, 0)
        whole = substitute(first, {y: ZERO, z: ZERO})
        own = z * index(FRAGMENT.rows * row) + y * index(row)
        self.require(simplify(first - whole - own) is ZERO, "has rows of other threads")
        self.check_begin(left.buffer, whole)
        of_group = z // index(WARPS_OF_GROUP) * index(WARPS_OF_GROUP)
        return self.place(left, {y: ZERO, z: of_group})

    def right_columns(self, right: Address, strides: Sequence[int]) -> tuple[Expr, bool, int]:
        """Returns where the right factor begins, whether its rows are of columns, and how far their parts are apart."""
        row = SWIZZLED_BYTES // right.buffer.dtype.bytes
        across = list(strides) == [row, 1]
        told = "has a right factor whose rows are not those of swizzled memory"
        self.require(across or list(strides) == [1, row], told)
        x, begin = self.around.threads["threadIdx.x"].var, self.at(right, 0)
        whole = substitute(begin, {x: ZERO})
        own = x * index(FRAGMENT.pairs * (1 if across else row))
        self.require(simplify(begin - whole - own) is ZERO, "has columns of other threads")
        self.check_begin(right.buffer, whole)
        apart = self.apart(right, row) if across and self.columns > row else SWIZZLED_ROWS * row
        steps = [self.step(j, row, apart, across=across) for j in range(self.count)]
        exact = all(simplify(self.at(right, j) - begin - index(n)) is ZERO for j, n in enumerate(steps))
        self.require(exact, "has columns that do not lie one after another")
        return self.place(right, {x: ZERO}), across, apart

    def place(self, a: Address, values: Mapping[Var, Expr]) -> Expr:
        """Returns the index of *a* for the first columns, with *values* of the thread's numbers."""
        return simplify(substitute(a.indices[0], {**values, self.loop.var: ZERO}), self.bounds)

    def require(self, holds: bool, told: str) -> None:
        """Refuses the products unless something *holds*."""
        if not holds:
            raise product_error(self.kernel, self.call, told)

    def check_threads(self) -> None:
        """Refuses products that are not computed by whole warpgroups."""
        self.require(not self.around.parting, "is under a condition that only some threads of a warp may meet")
        warps = self.around.extents.get("threadIdx.z", 1)
        self.require(
            self.around.are_warps and warps % WARPS_OF_GROUP == 0,
            f"is not made by groups of {WARPS_OF_GROUP} warps of {FRAGMENT.quads} x {FRAGMENT.groups} threads along x and y",
        )

    def at(self, a: Address, column: int) -> Expr:
        """Returns the index of *a* for the fragment numbered *column*."""
        return simplify(substitute(self.around.value(a.indices[0]), {self.loop.var: index(column)}), self.bounds)

    def check_begin(self, b: Buffer, at: Expr) -> None:
        """Refuses a factor that does not begin in a row whose pieces lie as in the first one, with all its terms."""
        row = SWIZZLED_BYTES // b.dtype.bytes
        is_first = simplify(at // index(row) % index(SWIZZLED_ROWS), self.bounds) is ZERO
        is_inside = prove(at % index(row) <= index(row - terms_of(b.dtype)), self.bounds)
        self.require(
            (is_first and is_inside) or known_divisor(at) % (SWIZZLED_ROWS * row) == 0,
            f"takes terms of {b.name} from a row on that does not begin a part of {SWIZZLED_ROWS}",
        )

    def apart(self, right: Address, row: int) -> int:
        """Returns how many elements the parts of rows of columns are apart."""
        step = simplify(self.at(right, row // FRAGMENT.columns) - self.at(right, 0))
        return int(step.value) if isinstance(step, Const) else 0

    def step(self, j: int, row: int, apart: int, *, across: bool) -> int:
        """Returns how far the fragment of columns numbered *j* is from the first one."""
        if not across:
            return j * FRAGMENT.columns * row
        parts = row // FRAGMENT.columns
        return j // parts * apart + j % parts * FRAGMENT.columns


def _awaited(s: Stmt) -> Stmt | None:
    """Inserts the fence, commit and wait around the products in *s*; in a loop that retains its operands, the wait is delayed."""
    if isinstance(s, Seq):
        return seq(*[q for p in s.body for q in _group(p)])
    retained = find_note(s.notes, Retained) if isinstance(s, For) else None
    if not isinstance(s, For) or retained is None:
        return None
    waits = [c for c in _calls(s.body) if c.callee == WAIT]
    kept = seq(*[p for p in s.body.body if p not in waits]) if isinstance(s.body, Seq) else s.body
    later = [Call(WAIT, (index(retained.iterations), *c.args[1:])) for c in waits]
    loop = For(s.var, s.begin, s.extent, s.kind, seq(kept, *later), without_notes(s.notes, Retained))
    return seq(loop, *waits)


def _calls(s: Stmt) -> list[Call]:
    return [p for p in s.body if isinstance(p, Call)] if isinstance(s, Seq) else []


def _group(part: Stmt) -> list[Stmt]:
    """Returns *part*; where it is products alone, those of a group, which is awaited."""
    s = part
    while isinstance(s, For) and s.kind is LoopKind.UNROLLED:
        s = s.body
    if not isinstance(s, Call) or s.callee not in GROUP_CALLEES:
        return [part]
    return [Call(BEGIN, ()), part, Call(COMMIT, ()), Call(WAIT, (ZERO, s.args[0], s.args[3]))]

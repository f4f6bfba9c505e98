"""Hardware instructions that compute a small tensor operation, declared by their semantics and their implementation.

    TensorIntrinsic("x86.dot_u8i8_16x4", '''
    def semantics(C: i32[16], A: u8[4], B: i8[16, 4]): ...           loops around one block, matched by `tensorize`
    def implementation(C: i32[16], A: u8[4], B: i8[16, 4]): ...      code put in its place, over the same buffers
    ''', features=("avx512vnni",))

A parameter with strides takes an operand of these strides; a stride that is itself a parameter takes that of the operand.
A parameter in a scope of its own takes an operand there; one in "global" may be in any ordinary memory. The
implementation may use vectors, `dot`, views of its parameters as one-dimensional buffers, and calls: of the intrinsic itself,
by its name and with its parameters, where an instruction reads and writes memory that only the target knows. The interpreter
then runs the semantics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weft.loop import (
    AxisKind,
    Block,
    Buffer,
    Effects,
    For,
    Function,
    Param,
    Program,
    Region,
    Stmt,
    Store,
    View,
    full_region,
    loads,
    parse_program,
    statements,
    verify,
)
from weft.support.dtypes import DType
from weft.support.errors import VerifyError
from weft.targets.target import Target

ORDINARY: frozenset[str] = frozenset({"global", "local", "register"})
"""The scopes that plain loads and stores reach."""

GROUP_BYTES: Final = 4
"""Bytes of a group: the neighbouring terms that a dot product of narrow elements adds to one sum of 32 bits."""


def group_of(dtype: DType) -> int:
    """Returns the terms of a group of *dtype*: 2 of bf16, 4 of bytes."""
    return GROUP_BYTES // dtype.bytes


@dataclass(frozen=True)
class DotProduct:
    """The shape of a dot product: *lanes* sums of *group* products each, of a row's elements *a* and the columns' *b*.

    It takes as long as *cycles* multiply-adds of a vector, and *temporaries* registers beside the sums and the columns. A tile
    converts each row by so many operations, once for all of its columns, and each vector of columns once for all rows. The cycles
    are estimates, which rank instructions and sizes of tiles; `dot_products` has those of a core in their place.
    """

    a: DType
    b: DType
    sums: DType
    lanes: int
    group: int
    cycles: float = 1.0
    temporaries: int = 1
    row_operations: int = 0
    column_operations: int = 0


@dataclass(frozen=True, eq=False)
class TensorIntrinsic:
    """A tensor instruction: the text of two functions, and LLVM's names of the features that it needs.

    One that multiplies a row by columns has the shape of that in *dot*.
    """

    name: str
    text: str
    features: tuple[str, ...] = ()
    dot: DotProduct | None = None

    @cached_property
    def program(self) -> Program:
        """Both functions, read from the text when first asked for; raises `VerifyError` for an invalid declaration."""
        program = parse_program(self.text)
        verify(program)
        _check(self, program)
        return program

    @property
    def semantics(self) -> Function:
        """The semantics of the instruction: loops around one block of one assignment, which it does all at once."""
        return self.program.functions[0]

    @property
    def implementation(self) -> Function:
        """How it is computed."""
        return self.program.functions[1]

    @property
    def model(self) -> Function:
        """The semantics under the intrinsic's name: the function that a call of it runs."""
        s = self.semantics
        return Function(self.name, s.params, s.body, s.notes)

    @property
    def loops(self) -> list[For]:
        """The loops of the semantics, outermost first."""
        return _nest(self.semantics.body)[0]

    @property
    def block(self) -> Block:
        """The block of the semantics."""
        return _block(self, self.semantics.body)

    @property
    def reads(self) -> tuple[Region, ...]:
        """The regions of its parameters that it reads."""
        found = dict.fromkeys(x.buffer for x in loads(self.block.body))
        return tuple([full_region(b) for b in found])

    @property
    def writes(self) -> tuple[Region, ...]:
        """The regions of its parameters that it writes, all of them completely."""
        return (full_region(_store(self, self.block).buffer),)

    def effects(self) -> Effects:
        """Returns the effects of a call: the numbers of the parameters that it reads and writes."""
        number = {p: n for n, p in enumerate(self.semantics.params)}
        read, written = [frozenset(number[r.buffer] for r in regions) for regions in (self.reads, self.writes)]
        return Effects(read, written)

    def is_on(self, target: Target) -> bool:
        """Tells whether *target* has the instruction, and the memories that it works on."""
        if not all(target.has(f) for f in self.features):
            return False  # without reading the declarations, of which there are many more than one target has
        scopes = {p.scope for p in self.semantics.params if isinstance(p, Buffer)}
        return scopes <= {*ORDINARY, *[s.name for s in target.scopes]}


def _check(i: TensorIntrinsic, program: Program) -> None:
    """Refuses functions that do not declare an intrinsic."""
    if [f.name for f in program.functions] != ["semantics", "implementation"]:
        raise VerifyError(f"{i.name} is to have two functions: semantics and implementation")
    semantics, implementation = program.functions
    if [_kind(p) for p in semantics.params] != [_kind(p) for p in implementation.params]:
        raise VerifyError(f"the semantics and the implementation of {i.name} have different parameters")
    _check_views(i, implementation)
    _check_block(i, semantics)


def _check_views(i: TensorIntrinsic, implementation: Function) -> None:
    """Refuses an implementation that views anything but dense parameters, each as a row of elements of its own type."""
    for s in statements(implementation.body):
        if not isinstance(s, View):
            continue
        is_row = s.buffer.rank == 1 and s.buffer.dtype is s.source.dtype
        if not (is_row and s.source in implementation.params and is_dense(s.source)):
            raise VerifyError(f"{i.name} is to view whole parameters that are dense, in their own type")


def _check_block(i: TensorIntrinsic, semantics: Function) -> None:
    """Refuses semantics other than loops, one for each axis of their block, that assign each element of the result once."""
    block = _block(i, semantics.body)
    store, loops = _store(i, block), _nest(semantics.body)[0]
    if block.init is not None or list(block.bindings) != [f.var for f in loops]:
        raise VerifyError(f"{i.name} is to bind each axis of its block to one loop, and to start no reduction")
    if any(a.kind not in (AxisKind.SPATIAL, AxisKind.REDUCE) for a in block.axes):
        raise VerifyError(f"the axes of {i.name} are to be spatial, or reduced over")
    spatial = [a.var for a in block.axes if a.kind is AxisKind.SPATIAL]
    extents = tuple([a.extent for a in block.axes if a.kind is AxisKind.SPATIAL])
    if list(store.indices) != spatial or store.buffer.shape != extents:
        raise VerifyError(f"{i.name} is to write each element of {store.buffer.name}, at its spatial axes in order")


def is_dense(b: Buffer) -> bool:
    """Tells whether the elements of *b* lie side by side in memory, the last index moving fastest."""
    return b.strides is not None and b.strides == Buffer("", b.shape, b.dtype).row_major_strides()


def _kind(p: Param) -> tuple[object, ...]:
    if not isinstance(p, Buffer):
        return p.name, p.dtype
    strides = None if p.strides is None else [str(s) for s in p.strides]
    return p.name, p.dtype, p.scope, p.shape, str(strides)


def _nest(body: Stmt) -> tuple[list[For], Stmt]:
    """Returns the loops nested in one another from *body* inwards, and the body of the innermost."""
    loops: list[For] = []
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    return loops, body


def _block(i: TensorIntrinsic, body: Stmt) -> Block:
    _, inside = _nest(body)
    if not isinstance(inside, Block):
        raise VerifyError(f"the semantics of {i.name} are to be loops around one block")
    return inside


def _store(i: TensorIntrinsic, block: Block) -> Store:
    if not isinstance(block.body, Store):
        raise VerifyError(f"the block of {i.name} is to be one assignment")
    return block.body

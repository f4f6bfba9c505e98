"""Makes a function of each grid, a kernel, which the host launches by calling it.

    def main(A, C, n):                                     def main(A, C, n):
        for i in bound(0, n // 16, thread="blockIdx.x"):       main_kernel(A.at(0), C.at(0), n)
            for t in bound(0, 16, thread="threadIdx.x"):   def main_kernel(A, C, n):  # kernel
                C[i * 16 + t] = A[i * 16 + t]      ->          for i in bound(0, n // 16, thread="blockIdx.x"):
                                                                   for t in bound(0, 16, thread="threadIdx.x"):
                                                                       C[i * 16 + t] = A[i * 16 + t]

A kernel's parameters tell how many blocks and threads to launch: `launch_of` reads that off its loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir import ONE, ZERO, Const, Expr
from weft.loop import (
    Address,
    Alloc,
    Buffer,
    Call,
    For,
    Function,
    Kernel,
    Program,
    Stmt,
    find_note,
    statements,
    without_moot_notes,
)
from weft.lower.analysis.grid_shape import axis_of, is_over_blocks
from weft.lower.loops.outline_tasks import captured
from weft.lower.stmt_rewriter import StmtRewriter, Visited
from weft.support.errors import LoweringError
from weft.targets import Sight, Target, sight_of


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: blocks and threads along x, y, z, in terms of its parameters, and bytes of a block's memory."""

    blocks: tuple[Expr, Expr, Expr]
    threads: tuple[int, int, int]
    shared: int


def split_host_device(program: Program, target: Target) -> Program:
    """Returns *program* with its grids made into functions with the note `Kernel`; refuses one that needs too much memory."""
    functions: list[Function] = []
    for f in program.functions:
        split = _Split(f)
        functions.append(f.with_body(split.rewrite(f.body)))
        functions += split.kernels
    for f in functions:
        if find_note(f.notes, Kernel) is not None:
            _check_memory(f, target)
    return program if tuple(functions) == program.functions else Program(tuple(functions))


class _Split(StmtRewriter):
    """Collects the kernels of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.kernels: list[Function] = []

    def visit(self, s: Stmt) -> Visited:
        return self._kernel(s) if is_over_blocks(s) else super().visit(s)

    def _kernel(self, grid: Stmt) -> Call:
        name = f"{self.function.name}_kernel{len(self.kernels) or ''}"
        buffers, scalars = captured(grid, ())
        self.kernels.append(without_moot_notes(Function(name, (*buffers, *scalars), grid, (Kernel(),))))
        return Call(name, (*[Address(b, tuple([ZERO] * b.rank)) for b in buffers], *scalars))


def launch_of(kernel: Function) -> Launch:
    """Returns how *kernel* is launched."""
    extents: dict[str, Expr] = {}
    shared: list[Buffer] = []
    s = kernel.body
    while isinstance(s, For | Alloc):
        if isinstance(s, Alloc):
            shared += [s.buffer] if sight_of(s.buffer.scope) is Sight.BLOCK else []
        elif (axis := axis_of(s)) is not None:
            extents[axis] = s.extent
        else:
            break
        s = s.body
    x, y, z = [extents.get(f"blockIdx.{a}", ONE) for a in "xyz"]
    i, j, k = [_constant(extents.get(f"threadIdx.{a}", ONE)) for a in "xyz"]
    return Launch((x, y, z), (i, j, k), sum([_bytes(b) for b in shared]))


def _constant(e: Expr, what: str = "the number of threads of a block") -> int:
    if not isinstance(e, Const):
        raise LoweringError(f"{what} is {e}, which is not a constant", hint="split by a constant factor")
    return int(e.value)


def _bytes(b: Buffer) -> int:
    what = f"a size of {b.name}, which is in {b.scope} memory,"
    last = [_constant((n - ONE) * s, what) for n, s in zip(b.shape, b.row_major_strides(), strict=True)]
    return b.dtype.bytes * (1 + sum(last))


def _check_memory(kernel: Function, target: Target) -> None:
    """Refuses a kernel that allocates more memory of a scope than *target* has."""
    needed: dict[str, int] = {}
    for s in statements(kernel.body):
        if isinstance(s, Alloc):
            needed[s.buffer.scope] = needed.get(s.buffer.scope, 0) + _bytes(s.buffer)
    for name, count in needed.items():
        scope = target.scope(name)
        if scope is not None and scope.bytes is not None and count > scope.bytes:
            who = "a block" if scope.sight is Sight.BLOCK else "a thread"
            raise LoweringError(
                f"{who} of {kernel.name} needs {count} bytes of {name} memory, but {target.name} has {scope.bytes}",
                hint="use smaller tiles",
            )

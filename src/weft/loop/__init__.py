"""Loop programs: tensor expressions are lowered to them, schedules rewrite them, and backends emit code for them."""

from weft.loop.alpha_equivalence import is_same
from weft.loop.canonical import canonical_text, structure_text
from weft.loop.buffer import Buffer, LateMemory, late_memory
from weft.loop.cells import allocated, cell, get, let, put
from weft.loop.effects import (
    AsyncStep, Effects, Token, Waits, addresses_touched, declare_effects, effects_of, is_hint, may_write,
)
from weft.loop.host_program import HOST, external_module, space_of, verify_host
from weft.loop.intrinsics import (
    ASYNC_COMMIT, ASYNC_COPY, ASYNC_WAIT, ATOMICS, BARRIER, COPY, HOST_OPERATORS, POP_TOKEN, PREFETCH, PUSH_TOKEN,
    WARP_BARRIER, WARP_SHUFFLE, HostOperator, copy, prefetch, updating_store,
)
from weft.loop.linked_programs import definitions, link_programs
from weft.loop.nodes import (
    NOTHING, Address, Alloc, Assert, Axis, AxisKind, Block, Call, Eval, For, Function, If, Let, Load, LoopKind, Param,
    Program, Range, Region, Seq, Stmt, Store, View, While, for_, full_region, seq, store,
)
from weft.loop.moot_notes import without_moot_notes
from weft.loop.notes import (
    NOTES, THREAD_AXES, CrossThread, DoubleBuffer, Entry, Export, External, FetchAhead, Kernel, MayAlias, Note, Prefetch,
    Retained, Task, TaskInside, TensorInstruction, Thread, Twins, UserNote, buffers_in, find_note, replace_in_notes, with_buffers,
    with_note, without_notes,
)
from weft.loop.stmt_outline import NAME_OF, Name, Outline, mentioned, outline
from weft.loop.parser import parse_program
from weft.loop.printer import print_function, print_program, print_stmt
from weft.loop.places import StmtPlace, meet
from weft.loop.regions import block_regions, make_block, touched_regions
from weft.loop.verifier import verify
from weft.loop.visit import (
    bound_vars, buffers_of, loads, map_stmts, own_buffers, own_exprs, rename_fresh, replace_buffer, replace_in_loop_notes,
    statements, stores, sub_statements,
)

__all__ = [
    "ASYNC_COMMIT", "ASYNC_COPY", "ASYNC_WAIT", "ATOMICS", "BARRIER", "COPY", "HOST", "HOST_OPERATORS", "NAME_OF", "NOTES",
    "NOTHING", "POP_TOKEN", "PREFETCH", "PUSH_TOKEN", "THREAD_AXES", "WARP_BARRIER", "WARP_SHUFFLE",
    "Address", "Alloc", "Assert", "AsyncStep", "Axis",
    "AxisKind", "Block", "Buffer", "Call", "CrossThread", "DoubleBuffer", "Effects", "Entry", "Eval", "Export", "External",
    "FetchAhead", "For", "Function", "HostOperator", "If", "Kernel", "LateMemory", "Let", "Load", "LoopKind", "MayAlias",
    "Name", "Note", "Outline", "Param", "Prefetch", "Program", "Range", "Region", "Retained", "Seq", "Stmt", "StmtPlace",
    "Store", "Task", "TaskInside", "TensorInstruction", "Thread", "Token", "Twins", "UserNote", "View", "Waits", "While",
    "addresses_touched", "allocated", "block_regions", "bound_vars", "buffers_in", "buffers_of", "canonical_text", "cell",
    "copy", "declare_effects", "definitions", "effects_of", "external_module", "find_note", "for_", "full_region", "get",
    "is_hint", "is_same", "late_memory", "let", "link_programs", "loads", "make_block", "map_stmts", "may_write", "meet",
    "mentioned", "outline", "own_buffers", "own_exprs", "parse_program", "prefetch", "print_function", "print_program",
    "print_stmt", "put", "rename_fresh", "replace_buffer", "replace_in_loop_notes", "replace_in_notes", "seq", "space_of",
    "statements", "store", "stores", "structure_text", "sub_statements", "touched_regions", "updating_store", "verify",
    "verify_host",    "with_buffers", "with_note", "without_moot_notes", "without_notes",
]

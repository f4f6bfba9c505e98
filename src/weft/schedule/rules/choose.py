"""The choice of rules: the program's blocks are classified, and each class has its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from weft.cost import (
    Candidate,
    Choose,
    Choosing,
    DepthProblem,
    Following,
    Plan,
    Planner,
    Rule,
    Takes,
    cheapest,
    depth_plans,
    elements,
    gemv_or_tiles,
    rule_plans,
)
from weft.loop import Block, Program
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import block_of, is_reduction, is_tileable, reduce_axes
from weft.schedule.rules.cpu.contractions.contraction import schedule_tiled
from weft.schedule.rules.cpu.contractions.dot_product import dot_instruction, schedule_dot
from weft.schedule.rules.cpu.contractions.gemv import gemv_matrix, schedule_gemv
from weft.schedule.rules.cpu.contractions.inner_products import is_inner_product, schedule_inner_products
from weft.schedule.rules.cpu.contractions.k_blocking import depth_problem, schedule_k_blocked
from weft.schedule.rules.cpu.contractions.matrix_registers import matrix_tile, schedule_matrix_tiles
from weft.schedule.rules.cpu.contractions.sketch import schedule_sketch
from weft.schedule.rules.cpu.elementwise import schedule_elementwise
from weft.schedule.rules.cpu.inline import inline_blocks
from weft.schedule.rules.cpu.rowwise import is_one_pass, schedule_rowwise
from weft.schedule.rules.cpu.scan import schedule_scans
from weft.schedule.rules.cpu.small_transform import schedule_transforms
from weft.schedule.rules.cpu.window import schedule_window
from weft.schedule.rules.cpu.winograd_batch import schedule_winograd_batch
from weft.schedule.rules.grid.choose_grid import schedule_grid
from weft.schedule.rules.sliding_window import is_strided_along, sliding_axes
from weft.schedule.schedule import Schedule
from weft.targets import Target


def schedule_program(
    program: Program, machine: Target, choose: Choose = cheapest, takes: Takes | None = None
) -> Schedule:
    """Returns *program*, as made from its formulas, scheduled for *machine* by the candidates that *choose* selects.

    With *takes*, tiles for a grid of threads are left out where it refuses the programs that they make.
    """
    return carry_out(program, Choosing(machine, choose, takes=takes))


def apply_plan(program: Program, plan: Plan) -> Schedule:
    """Returns *program* scheduled by the decisions of *plan*; raises `ScheduleError` if the plan is of another program."""
    planner = Following(plan)
    s = carry_out(program, planner)
    planner.finish()
    return s


def carry_out(program: Program, p: Planner) -> Schedule:
    """Returns *program* scheduled by the decisions of *p*: for a grid of threads, where they are about one, or for a CPU.

    For a CPU, reductions whose last axis is contiguous in their inputs (contractions, windows) are tiled in registers; others
    are computed row by row; the remaining blocks are element-wise and vectorised. The steps of a recurrence are scheduled apart,
    in vectors.
    """
    s = Schedule(program)
    if p.is_grid:
        schedule_grid(s, p)
        return s
    inline_blocks(s, p)
    placed = schedule_scans(s, p) | schedule_winograd_batch(s, p)
    one_pass = not placed and is_one_pass(s, p)
    for ref in s.blocks():
        block = block_of(s, ref)
        if ref in placed or one_pass or not is_reduction(block):
            continue
        if (tile := matrix_tile(ref, block, p)).rows:
            placed |= schedule_matrix_tiles(s, ref, p, tile)
        elif instruction := dot_instruction(ref, block, p):
            placed |= schedule_dot(s, ref, p, instruction)
        elif is_tileable(s, ref):
            placed |= RULES[_rule(s, ref, p)](s, ref, p)
        elif is_inner_product(block, p):
            placed |= schedule_inner_products(s, ref, p)
        elif is_strided_along(block):
            placed |= schedule_window(s, ref, p)
    placed |= schedule_transforms(s, p, placed)
    placed |= schedule_rowwise(s, p, placed)
    for ref in s.blocks():
        if ref not in placed:
            schedule_elementwise(s, ref, p)
    return s


def _rule(s: Schedule, ref: BlockRef, p: Planner) -> str:
    """Decides on the rule for a reduction that can be tiled: that for its kind, or a sketch."""
    block = block_of(s, ref)
    known = _rules(block, None if sliding_axes(block) else depth_problem(s, ref, p))
    return p.decide(ref.name, Rule, lambda m: rule_plans(known(m))).name


def _rules(block: Block, deep: DepthProblem | None) -> Callable[[Target], Iterable[Candidate[Rule]]]:
    """Returns the rules for the kind of *block*, on a machine; *deep* is its reduction, if it is a contraction."""
    matrix = gemv_matrix(block)
    if sliding_axes(block):
        return lambda _: [Candidate(Rule("window"), 0.0)]
    if matrix is not None:
        return lambda m: gemv_or_tiles(*matrix, elements(reduce_axes(block)), m)
    if deep is not None:
        return lambda m: depth_plans(deep, m)
    return lambda _: [Candidate(Rule("tiled"), 0.0)]


RULES: Final[dict[str, Callable[[Schedule, BlockRef, Planner], set[BlockRef]]]] = {
    "gemv": schedule_gemv,
    "k_blocked": schedule_k_blocked,
    "sketch": schedule_sketch,
    "tiled": schedule_tiled,
    "window": schedule_window,
}
"""The rules of contractions, by the names that decisions have."""

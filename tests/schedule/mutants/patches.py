"""Bugs planted in the legality checks and the lowering passes: each is an edit of one place, and the idea behind it.

Each must be caught by the tests named with it, or by a slice of the fuzzing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mutant:
    """In *file*, *old*, which occurs there once, becomes *new*; *tests*, under `tests`, are the first to look for it."""

    file: str
    old: str
    new: str
    idea: str
    tests: tuple[str, ...]


def _test(room: str, name: str) -> str:
    """Returns the path of a test: *name* may begin with a room of its own, or with a folder of *room*."""
    folder, _, stem = name.rpartition("/")
    return (
        f"{folder}/test_{stem}.py"
        if folder.startswith(("schedule", "lower"))
        else f"{room}/{folder}/test_{stem}.py".replace("//", "/")
    )


def _schedule(file: str, old: str, new: str, idea: str, *tests: str) -> Mutant:
    return Mutant(f"src/weft/schedule/{file}.py", old, new, idea, tuple([_test("schedule", t) for t in tests]))


def _lower(file: str, old: str, new: str, idea: str, *tests: str) -> Mutant:
    named = [_test("lower", t) for t in tests]
    return Mutant(f"src/weft/lower/{file}.py", old, new, idea, tuple(named))


SCHEDULE: Final = (
    _schedule(
        "legality/bijection", "return found is not None and found.bijective", "return found is not None",
        "instances that run twice, or never, pass for a bijection", "primitives/placement/reverse_compute_at",
        "legality/polyhedral",
    ),
    _schedule(
        "legality/bijection", "return made is not None and made.surjective", "return True",
        "a reduction over a part passes for the whole", "primitives/placement/compute_at", "primitives/placement/compute_root",
    ),
    _schedule(
        "legality/bijection", "return not mixed_loops(path) and all(z is ZERO for z in at_zero)", "return True",
        "a reduction may run its first instance late", "primitives/loops/reorder", "primitives/placement/reverse_compute_at",
        "primitives/reductions/decompose_reduction",
    ),
    _schedule(
        "legality/flow_dependence", "            and self._is_full(written, known)\n", "",
        "a box with holes counts as written", "primitives/loops/parallel", "primitives/placement/compute_at", "random",
    ),
    _schedule(
        "legality/flow_dependence", "            and self._is_unguarded(written, needs)\n", "",
        "what a guard leaves out counts as written", "primitives/loops/parallel", "primitives/placement/compute_at", "random",
    ),
    _schedule(
        "legality/flow_dependence", "    return not any(v in outer for b in combined for v in free_vars(b))", "    return True",
        "a sum counts as finished before its loop ends", "primitives/placement/reverse_compute_at",
        "primitives/placement/compute_at", "random",
    ),
    _schedule(
        "legality/flow_dependence", "        is_before(w.path, read.path)\n        and is_finished", "        is_finished",
        "a write after a read counts as feeding it", "legality/order_of_accesses",
    ),
    _schedule(
        "legality/flow_dependence", "prove(first[1] < second[0], bounds)", "prove(first[1] <= second[0], bounds)",
        "boxes that share an end count as disjoint", "primitives/loops/parallel", "primitives/loops/reorder", "random",
    ),
    _schedule(
        "legality/flow_dependence", "return most // step * step < least", "return most // step * step <= least",
        "indices that meet once in a while count as taking turns", "primitives/loops/reorder", "primitives/loops/parallel",
    ),
    _schedule(
        "legality/flow_dependence", " or self._reads_nothing_beyond(c, needs)",
        " or not any(v in self.vars for v in free_vars(c))",
        "what a guard leaves out of an iteration counts as padding", "primitives/loops/reorder", "primitives/loops/parallel",
        "legality/polyhedral",
    ),
    _schedule(
        "legality/iteration_domain", "high = min(high, ((most - 1) // -k) * step + step - 1)",
        "high = min(high, ((most - 1) // -k) * step)",
        "a loop that a guard cuts loses its last iterations", "legality/iteration_domain",
    ),
    _schedule(
        "legality/iteration_domain", "if any(_implies(other, c, bounds) for other in kept if other is not c):",
        "if len(kept) > 1:",
        "one of several conditions counts as the others' consequence", "legality/iteration_domain",
    ),
    _schedule(
        "legality/output_dependence", "    return apart and all(_is_fed(", "    return apart or all(_is_fed(",
        "a copy that moves may leave readers to what others wrote", "primitives/placement/compute_root", "legality/polyhedral",
    ),
    _schedule(
        "legality/output_dependence", "return once and is_bijective(before, other.path) and _is_fed(",
        "return once or _is_fed(",
        "updates may move away from a start in another iteration", "primitives/placement/compute_at",
    ),
    _schedule(
        "legality/placement", "        if not is_finished(path, path[: common_length(path, read.path)]):", "        if False:",
        "a sum that is read as far as it is may move", "primitives/placement/compute_root",
    ),
    _schedule(
        "primitives/reductions/decompose_reduction", "(is_before(own.path, other.path) and covers_read(fn, own, other))",
        "is_before(own.path, other.path)",
        "results may be started before what was left in them is read", "primitives/reductions/decompose_reduction",
    ),
    _schedule(
        "legality/loop_kinds", "later = {target.var: target.var + ONE}", "later = {target.var: target.var + ONE + ONE}",
        "iterations that reach into the next one count as apart", "primitives/loops/parallel",
    ),
    _schedule(
        "legality/loop_kinds", "if axis.kind not in fine and any(", "if axis.kind is AxisKind.OPAQUE and any(",
        "a loop that a sum runs over may be parallel", "primitives/loops/parallel", "primitives/loops/vectorize",
    ),
    _schedule(
        "legality/loop_kinds", "v in indices and is_injective_in_loop(fn, write.path, target, v) for v in axes",
        "v in indices for v in axes",
        "iterations that write the same elements count as apart", "primitives/loops/parallel", "legality/polyhedral",
    ),
    _schedule(
        "legality/loop_carried", "any(w.path != r.path or not _is_told(fn, w, r, target) for w in",
        "any(w.path != r.path for w in",
        "a recurrence may run in parallel", "legality/order_of_accesses",
    ),
    _schedule(
        "legality/reaching_writes", "    if not is_before(w.path, new):", "    if is_before(new, w.path) and False:",
        "a block may move before what it reads is made", "primitives/placement/compute_at",
        "primitives/placement/reverse_compute_at", "primitives/placement/compute_inline", "random",
    ),
    _schedule(
        "legality/reaching_writes", "        if found.own_reads or any(w.path != first.path for w in found.writes):",
        "        if found.own_reads:",
        "values that are written twice count as unchanging", "primitives/placement/compute_at",
        "primitives/placement/compute_inline",
        "random", "legality/polyhedral",
    ),
    _schedule(
        "legality/access_region", "width = simplify(ends[1] - ends[0] + ONE, bounds)",
        "width = simplify(ends[1] - ends[0], bounds)",
        "the box that is needed lacks its last element", "primitives/placement/compute_at", "primitives/storage/rolling_buffer",
    ),
    _schedule(
        "legality/predicate_bounds", "    exact = prove(high - low < k, bounds)", "    exact = True",
        "a guard counts as cutting exactly", "primitives/loops/parallel", "primitives/placement/compute_at", "random",
    ),
    _schedule(
        "rewriting/index_map", "    if made is None or not made.bijective:", "    if made is None:",
        "a layout may put two elements in one place", "primitives/storage/pack", "primitives/storage/transform_layout",
    ),
    _schedule(
        "rewriting/layout_change", "select(layout.is_inside(old, bounds), value(old), const(pad, target.dtype))", "value(old)",
        "padding is read beyond the source", "primitives/storage/pack", "legality/found_by_fuzzing",
    ),
    _schedule(
        "primitives/loops/split", "guard = TRUE if prove(inside, bounds) else inside", "guard = TRUE",
        "a split that does not divide runs too far", "primitives/loops/split", "primitives/loops/tile",
    ),
    _schedule(
        "primitives/loops/fuse", "var // below if f is nest[0] else (var // below) % f.extent", "var // below",
        "an inner position is not taken modulo its extent", "primitives/loops/fuse",
    ),
    _schedule(
        "primitives/loops/reorder", "kinds = {AxisKind.ORDERED, AxisKind.OPAQUE}", "kinds = {AxisKind.OPAQUE}",
        "the steps of a scan may change places", "primitives/loops/reorder", "random",
    ),
    _schedule(
        "primitives/hardware/software_pipeline", "return moving[0], int(step.value) * (distance + 1)",
        "return moving[0], int(step.value) * distance",
        "a pipeline has one place too few", "primitives/hardware/software_pipeline",
    ),
    _schedule(
        "primitives/storage/rolling_buffer", "if int(step.value) >= int(needed.extent.value):",
        "if int(step.value) > int(needed.extent.value):",
        "a window that moves by its own length is kept", "primitives/storage/rolling_buffer",
    ),
)  # fmt: skip

LOWER: Final = (
    _lower(
        "loops/vectorize", "lanes = 1 if _has_vectors(loop.body) else target.access_lanes(", "lanes = target.access_lanes(",
        "vectors of vectors", "schedule/legality/found_by_fuzzing",
    ),
    _lower(
        "loops/vectorize", "for width in _powers_of_two(rest):", "for width in _powers_of_two(rest - 1):",
        "the last iteration of a remainder is lost", "passes/vectorize", "random",
    ),
    _lower(
        "analysis/widen", "divisor % a.lanes or simplify(a.base % a.lanes, w.bounds) is not ZERO", "divisor % a.lanes",
        "a vector that starts in the middle of a row ends there", "schedule/legality/found_by_fuzzing",
    ),
    _lower(
        "loops/tighten_loop_bounds", "return int(c.b.value) + isinstance(c, Le)", "return int(c.b.value)",
        "a loop cut by `<=` misses its last iteration", "passes/loops", "random",
    ),
    _lower(
        "loops/hoist_invariants", "if loop.var in free_vars(e):", "if loop.var in free_vars(e) and loop.extent is ONE:",
        "values that vary leave their loop", "passes/hoist_invariants", "random",
    ),
    _lower(
        "loops/partition_loops", "parts = [(s.begin, cut.begin), (cut.begin, cut.end), (cut.end, end)]",
        "parts = [(cut.begin, cut.end), (cut.end, end)]",
        "the border before the long part is lost", "passes/partition_loops", "random",
    ),
    _lower(
        "buffers/compact_buffers", "found = one if k == 0 else hull(found, one, alloc.bounds)",
        "found = one if k == 0 else found",
        "of two parts of a buffer only the first is kept", "passes/buffers", "random",
    ),
    _lower(
        "buffers/expand_double_buffers", "turn = (s.var - s.begin) % index(2)", "turn = (s.var - s.begin) % index(3)",
        "a third place that there is no memory for", "schedule/primitives/storage/double_buffer",
    ),
    _lower(
        "grid/pipeline_copies", "(index(ahead - 1), *", "(index(ahead), *",
        "threads wait for one group of copies less", "schedule/primitives/storage/fetch_ahead",
    ),
    _lower(
        "buffers/flatten_buffers", "size = size + (s - ONE) * stride", "size = size + (s - ONE - ONE) * stride",
        "memory with strides is too short", "schedule/primitives/storage/storage_align", "passes/buffers",
    ),
    _lower(
        "loops/unswitch_loops", "if c.dtype.lanes == 1 and bound.isdisjoint(free_vars(c)) and not reads_memory(c)",
        "if c.dtype.lanes == 1 and not reads_memory(c)",
        "conditions that vary leave their loop", "passes/hoist_invariants", "random",
    ),
    _lower(
        "cleanup/remove_noops", "isinstance(n, Load | Address)}\n    return found", "isinstance(n, Address)}\n    return found",
        "stores to memory that is read are dropped", "passes/simplify_program", "random",
    ),
    _lower(
        "loops/outline_tasks", "body = substitute(body, {loop.var: loop.begin + loop.var})", "body = substitute(body, {})",
        "a parallel loop that begins late begins early", "passes/loops", "random",
    ),
)  # fmt: skip

MUTANTS: Final = (*SCHEDULE, *LOWER)

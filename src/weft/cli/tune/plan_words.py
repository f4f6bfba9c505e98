"""The differences between two plans, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Final

from weft.cost import (
    Borders,
    ByteFragments,
    CacheTile,
    CombineProducts,
    Decision,
    DilationPhases,
    FactorsInParts,
    FusePanels,
    GridOperand,
    ImplicitProduct,
    Inline,
    InnerOrder,
    JoinAttention,
    Layout,
    MergeAxes,
    NarrowWeight,
    OnePass,
    Order,
    OuterOrder,
    PackPanel,
    PadInput,
    Parallel,
    Plan,
    Prefetch,
    PrefetchSteps,
    Recompute,
    ReduceOrder,
    ReduceTile,
    RegisterTile,
    RoundedAttention,
    RoundedFactors,
    Rule,
    RunOn,
    SharePatches,
    SkipPadding,
    Tabulate,
    TakenApart,
    Tile,
    TransposedPhases,
    TurnedWeight,
    UpdateOrder,
    Winograd,
    WriteOut,
    addressed,
)

EITHER: Final[Mapping[type[Decision], tuple[str, str]]] = {
    ByteFragments: ("in fragments", "as integers of 32 bits"),
    CombineProducts: ("one product", "one by one"),
    DilationPhases: ("images of their own", "left in one"),
    GridOperand: ("in panels", "as it lies"),
    JoinAttention: ("one kernel", "a product, a softmax and a product"),
    Layout: ("channels in blocks", "plain, channel by channel"),
    MergeAxes: ("made one", "left apart"),
    RunOn: ("on the processor", "on the device"),
    NarrowWeight: ("in the kernel that multiplies by it", "while compiling"),
    Recompute: ("fused, and computed each time", "computed once, and stored"),
    RoundedAttention: ("rounded", "in float32"),
    RoundedFactors: ("rounded", "in float32"),
    Tabulate: ("a table", "computed"),
    TakenApart: ("by whole panels, before they are multiplied", "where they are multiplied"),
    TransposedPhases: ("computed apart", "interleaved"),
    TurnedWeight: ("transposed", "as it lies"),
    UpdateOrder: ("any, by atomic operations", "one after another"),
    Borders: ("inlined", "copied with their padding first"),
    FusePanels: ("fused into one", "one inside the other"),
    Inline: ("inlined", "computed by itself"),
    OnePass: ("row by row", "one reduction after another"),
    Order: ("by rows of the result", "by panels of B"),
    PackPanel: ("packed one by one", "as they lie"),
    PrefetchSteps: ("in each step", "none"),
    SharePatches: ("those over patches", "those of each stage"),
    SkipPadding: ("left out", "computed"),
    WriteOut: ("all", "those of the last axis"),
}
"""Decisions of two alternatives, in words: that of True and that of False."""


@dataclass(frozen=True)
class Difference:
    """A question about *subject* that two plans answer differently; None where a plan does not come to it."""

    question: str
    subject: str
    before: str | None
    after: str | None

    @property
    def answer(self) -> str:
        """The new answer beside the old one."""
        if self.before is None:
            return f"{self.after}, where the rules have no such choice"
        return (
            f"no such choice any more; {self.before} before"
            if self.after is None
            else f"{self.after} instead of {self.before}"
        )

    def __str__(self) -> str:
        return f"{self.question}: {self.answer}"


def plan_differences(before: Plan, after: Plan) -> list[Difference]:
    """Returns the questions that *after* answers differently from *before*, then those that one of the two alone has."""
    old, new = addressed(before.steps), addressed(after.steps)
    changed = [
        Difference(d.question, a[0], words_of(old[a]), words_of(d)) for a, d in new.items() if a in old and d != old[a]
    ]
    added = [Difference(d.question, a[0], None, words_of(d)) for a, d in new.items() if a not in old]
    dropped = [Difference(d.question, a[0], words_of(d), None) for a, d in old.items() if a not in new]
    return [*changed, *added, *dropped]


@singledispatch
def words_of(decision: Decision) -> str:
    """Returns the alternative taken, in a few words: `14 x 32 elements`, `inlined`; by its fields if nothing better."""
    if type(decision) in EITHER:
        yes, no = EITHER[type(decision)]
        return no if decision.is_plain else yes
    fields = {name.replace("_", " "): value for name, value in vars(decision).items()}
    if len(fields) == 1:
        [(name, value)] = fields.items()
        return f"{value} {name}" if type(value) is int else _plain(value)
    return ", ".join([f"{name} {_plain(value)}" for name, value in fields.items()])


@words_of.register
def _tile(decision: Tile) -> str:
    outer = (decision.outer_rows,) if decision.outer_rows > 1 else ()
    columns = (decision.columns,) if decision.columns > 1 else ()
    return f"{_times(*outer, decision.rows, *columns, decision.width)} elements"


@words_of.register
def _factors_in_parts(decision: FactorsInParts) -> str:
    if not decision.blocks:
        return "whole"
    terms = "" if decision.blocks == 1 else f", {decision.blocks} blocks of terms one after another"
    return f"in parts of bf16, whose products are summed{terms}"


@words_of.register
def _implicit_product(decision: ImplicitProduct) -> str:
    if not decision.product:
        return "place by place"
    factors = " of bf16" if decision.rounded else ""
    return (
        f"one product of matrices{factors} for all images"
        if decision.merged
        else f"a product of matrices{factors} for each image"
    )


@words_of.register
def _winograd(decision: Winograd) -> str:
    if decision.is_direct:
        return "directly"
    sizes = "of several sizes up to " if decision.mixed else "of "
    return f"Winograd's tiles {sizes}{_times(decision.tile, decision.tile)}, {_times(*decision.patch)} at a time"


@words_of.register
def _register_tile(decision: RegisterTile) -> str:
    return f"{_times(*decision.sizes)} elements"


@words_of.register
def _cache_tile(decision: CacheTile) -> str:
    return f"{_times(*decision.sizes)} register tiles"


@words_of.register
def _reduce_tile(decision: ReduceTile) -> str:
    return f"{_times(*decision.sizes)} steps, {'unrolled' if decision.unroll else 'in a loop'}"


@words_of.register
def _pad_input(decision: PadInput) -> str:
    return (
        "inlined" if decision.inline else f"copied {'for each cache tile' if decision.by_tile else 'before all tiles'}"
    )


@words_of.register(OuterOrder)
@words_of.register(InnerOrder)
@words_of.register(ReduceOrder)
def _loops(decision: OuterOrder | InnerOrder | ReduceOrder) -> str:
    return f"axes {', '.join(map(str, decision.axes))} from the outside in"


@words_of.register
def _rule(decision: Rule) -> str:
    return decision.name.replace("_", " ")


@words_of.register
def _parallel(decision: Parallel) -> str:
    return (
        "none" if decision.loops == 0 else "the outermost" if decision.loops == 1 else f"the {decision.loops} outermost"
    )


@words_of.register
def _prefetch(decision: Prefetch) -> str:
    found = ["the next panel"] * decision.panels + [f"{decision.distance} rows ahead"] * (decision.distance > 0)
    return " and ".join(found) or "none"


def _plain(value: object) -> str:
    """Returns the value of a field; pairs, such as sizes of axes, as `0: 4`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join([": ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value]) or "none"
    return str(value)


def _times(*sizes: int) -> str:
    return " x ".join(map(str, sizes))

"""The optimizations that can be switched off, one by one: to measure the gain of each, or to get around one that fails.

weft.compile(model, without=("winograd", "parallel"))

A knob is declared here, for optimizations that users know, of several passes or of none; a pass names those that switch it off
(`support.passes.Pass.knobs`). A pass alone is skipped by its name (`Switches.passes`). The option `without` of `weft.compile`,
`--without` of the commands and the first rows of `weft bench --ablate` are this table. It stands apart from the passes, since
looking for a compiled model in the cache, and showing a command's help, import none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from weft.support.arguments import check_many
from weft.support.errors import InputError


@dataclass(frozen=True)
class Knob:
    """An optimization that can be switched off: its name, the code that one gets with it, the lowest `opt_level` that has it."""

    name: str
    meaning: str
    opt_level: int


FUSION: Final = Knob("fusion", "several operators in one kernel", 1)
LAYOUT: Final = Knob("layout", "channels in blocks the size of a vector", 3)
WINOGRAD: Final = Knob("winograd", "convolutions with fewer multiplications", 3)
PREPACKING: Final = Knob("prepacking", "weights rearranged while compiling, not in each call", 1)
PARTS: Final = Knob("parts", "float32 multiplied as sums of products of bf16 (bf16x6), at float32's accuracy", 2)
MEMORY: Final = Knob("memory", "memory that is used again once its content is dead", 0)
PARALLEL: Final = Knob("parallel", "loops shared among threads", 0)
VERSIONS: Final = Knob("versions", "kernels of their own for single and short rows of open sizes", 1)
PRETUNED: Final = Knob("pretuned", "schedules that were tuned on such a machine and come with Weft", 1)

KNOBS: Final = {k.name: k for k in (FUSION, LAYOUT, WINOGRAD, PREPACKING, PARTS, MEMORY, PARALLEL, VERSIONS, PRETUNED)}
"""The knobs by name, in the order in which they are shown."""


@dataclass(frozen=True)
class Switches:
    """Which optimizations a compilation has.

    `opt_level`
        0: the graph as the model has it, but for constants, each node a kernel of its own;
        1: the graph made simpler and its nodes fused, with every tensor kept as the model stores it;
        2: weights packed for matrix products too;
        3: channels kept in blocks the size of a vector, and Winograd's method, too: everything (the default).
    `precision`
        "model" keeps the model's dtypes and may reassociate, or multiply float32 in parts, at its own accuracy; "strict" forbids
        rewrites that round otherwise than the model;
        "bf16" rounds the factors of float32 and float16 products to bf16 where that is faster, and sums them in float32; "tf32"
        rounds those of float32 to tf32, of 11 significant bits, on devices that multiply such.
    `without` names the knobs of `KNOBS` that are switched off.
    `passes` are settings of passes by name: `unswitch_loops=off`, `unswitch_loops.depth=1` (see `support.pass_options`).
    """

    opt_level: int = 3
    precision: str = "model"
    without: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether results must round as the model's do."""
        return self.precision == "strict"

    @property
    def narrow(self) -> bool:
        """Whether factors of contractions may be rounded to bf16."""
        return self.precision == "bf16"

    @property
    def rounds(self) -> bool:
        """Whether factors of contractions may be rounded at all."""
        return self.precision in ("bf16", "tf32")

    def uses(self, knob: Knob) -> bool:
        """Tells whether the optimization is on: its level is reached, and it is not among `without`."""
        return self.opt_level >= knob.opt_level and knob.name not in self.without


def check_knobs(without: Iterable[str]) -> tuple[str, ...]:
    """Returns the names sorted, each once; raises `InputError` for one that no optimization has."""
    hint = f"use {', '.join(KNOBS)}"
    names = [without] if isinstance(without, str) else check_many("without", without, hint)
    for name in names:
        if not isinstance(name, str) or name not in KNOBS:
            raise InputError(f"there is no optimization {name!r} to do without", hint=hint)
    return tuple([name for name in sorted(KNOBS) if name in names])

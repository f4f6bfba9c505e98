"""What a caller may ask of a compilation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.support.errors import InputError
from weft.support.knobs import check_knobs

PRECISIONS = ("model", "strict")


@dataclass(frozen=True)
class Options:
    """How hard to try, and what is allowed.

    `opt_level`
        0: the graph as the model has it, but for constants, each node a kernel of its own;
        1: the graph made simpler and its nodes fused, with every tensor kept as the model stores it;
        2: weights packed for matrix products too;
        3: channels kept in blocks the size of a vector, and Winograd's method, too: everything (the default).
    `precision`
        "model" keeps the model's dtypes and may reassociate; "strict" forbids rewrites that round otherwise than the model.
    `verify` checks every graph and every program between the passes, and takes no kernel from the cache.
    `without` names optimizations of `support.knobs` that are switched off.
    """

    opt_level: int = 3
    precision: str = "model"
    verify: bool = False
    without: tuple[str, ...] = ()

    def uses(self, knob: str, level: int) -> bool:
        """Tells whether the optimization called *knob* is on; it is one of those that `opt_level` *level* brings."""
        return self.opt_level >= level and knob not in self.without


def check_options(
    opt_level: int = 3,
    precision: str = "model",
    verify: bool = False,
    records: object = None,
    without: Iterable[str] = (),
) -> Options:
    """Returns the options; raises `InputError` for values that there are not."""
    if opt_level not in range(4):
        raise InputError(f"opt_level is {opt_level!r}", hint="use 0, 1, 2 or 3")
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}", hint='use "model" or "strict"')
    if records is not None:
        raise InputError("tuning records can't be used yet", hint="leave records out")
    return Options(opt_level, precision, bool(verify), check_knobs(without))

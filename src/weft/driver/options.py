"""The options of a compilation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from operator import index
from typing import Final, SupportsIndex

from weft.runtime.package import Denormals, check_denormals
from weft.support.arguments import check_bool, check_many, check_mapping
from weft.support.dim import RANGE, Dim, parse_dim
from weft.support.errors import InputError
from weft.support.knobs import MEMORY, Switches, check_knobs
from weft.support.pass_options import check_form

PRECISIONS = ("model", "strict", "bf16", "tf32")

STATES: Final = 'give names of inputs with those of the outputs that they become: state={"past_*": "present_*"}'
CAPACITY: Final = 'give states, by their inputs, the most rows that they may ever have: capacity={"past_*": 1024}'
SHAPES: Final = (
    'give sizes by name, such as shapes={"batch": 4}, {"batch": weft.Dim(1, 64)} or {"image": (1, 3, 224, 224)}'
)


@dataclass(frozen=True)
class CompileOptions(Switches):
    """The options of a compilation: the switches of optimizations, and

    `verify` checks every graph and every program between the passes, and takes no kernel from the cache.
    `denormals` are kept in calls, or flushed to zero; constants are always computed with those that there are.
    `records` is the path of a database of tuning records to follow; keys that are made of the options' text are made of the
    plans that it has instead. `states` are patterns of inputs' names, with those of the outputs that they become, and
    `capacity` has the most rows of those that grow.
    """

    verify: bool = False
    denormals: Denormals = "keep"
    records: str | None = field(default=None, repr=False)
    states: tuple[tuple[str, str], ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()

    @property
    def shares_memory(self) -> bool:
        """Whether kernels are ordered, and write into their inputs and into parts of their users' inputs, to save memory."""
        return self.opt_level >= 1 and self.uses(MEMORY)


def check_options(
    opt_level: int = 3,
    precision: str = "model",
    verify: bool = False,
    records: object = None,
    without: Iterable[str] = (),
    denormals: object = "keep",
    passes: Iterable[str] = (),
    state: object = None,
    capacity: object = None,
) -> CompileOptions:
    """Returns the options; raises `InputError` for values that there are not."""
    if type(opt_level) is not int or opt_level not in range(4):
        raise InputError(f"opt_level is {opt_level!r}", hint="use 0, 1, 2 or 3")
    if precision not in PRECISIONS:
        raise InputError(f"precision is {precision!r}", hint='use "model", "strict", "bf16" or "tf32"')
    return CompileOptions(
        opt_level,
        precision,
        check_knobs(without),
        check_form(passes),
        check_bool("verify", verify),
        check_denormals(denormals),
        check_records(records),
        check_states(state),
        check_capacity(capacity),
    )


def check_records(records: object) -> str | None:
    """Returns the path of a database of tuning records; raises `InputError` for any other value."""
    path = os.fspath(records) if isinstance(records, os.PathLike) else records
    if path is not None and not isinstance(path, str):
        raise InputError(
            f"records is {records!r}", hint='give the path of a database of tuning records, such as "tune.db"'
        )
    return path


def check_states(states: object) -> tuple[tuple[str, str], ...]:
    """Returns names of inputs with those of outputs; raises `InputError` for others."""
    made: list[tuple[str, str]] = []
    for taken, left in check_mapping("state", states, STATES).items() if states is not None else ():
        if not isinstance(taken, str) or not isinstance(left, str):
            raise InputError(f"state has {taken!r}: {left!r}, which are no names", hint=STATES)
        made.append((taken, left))
    return tuple(made)


def check_capacity(capacity: object) -> tuple[tuple[str, int], ...]:
    """Returns the most rows of states by name; raises `InputError` for a value that is none."""
    made: list[tuple[str, int]] = []
    for name, given in check_mapping("capacity", capacity, CAPACITY).items() if capacity is not None else ():
        rows = _size(given)
        if not isinstance(name, str) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"capacity has {name!r}: {given!r}", hint=CAPACITY)
        made.append((name, rows))
    return tuple(made)


def check_shapes(shapes: object) -> dict[str, int | Dim | tuple[int | str | Dim, ...]] | None:
    """Returns sizes by the name of a symbolic dimension, and whole shapes by that of an input; raises `InputError` for others.

    A size may be a range; the range of a dimension may be text.
    """
    if shapes is None:
        return None
    return {_name(key): _shape(key, value) for key, value in check_mapping("shapes", shapes, SHAPES).items()}


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"shapes has {key!r}, which is no name", hint=SHAPES)
    return key


def _shape(key: object, value: object) -> int | Dim | tuple[int | str | Dim, ...]:
    """Returns the size of a dimension, or the shape of an input, whose sizes may be names."""
    size = parse_dim(value) if isinstance(value, str) and RANGE in value else _size(value)
    if size is not None:
        return size
    sizes = check_many(f"the shape of {key!r}", value, SHAPES)
    return tuple([_size_or_name(key, size) for size in sizes])


def _size_or_name(key: object, value: object) -> int | str | Dim:
    size = value if isinstance(value, str) else _size(value)
    if size is None:
        raise InputError(f"the shape of {key!r} has the size {value!r}", hint=SHAPES)
    return size


def _size(value: object) -> int | Dim | None:
    """Returns a whole number, Python's or NumPy's, as an int, and a range as it is; None for anything else."""
    if isinstance(value, Dim):
        return value
    with suppress(TypeError):
        if isinstance(value, SupportsIndex) and not isinstance(value, bool):
            return index(value)
    return None

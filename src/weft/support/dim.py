"""`Dim`: the sizes that a symbolic dimension may have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.support.errors import InputError

RANGE: Final = ".."
"""The text between the ends of a range."""

_FORM: Final = re.compile(r"(\d{1,18})\.\.(\d{1,18})?(?::(\d{1,18}))?")

EXAMPLES: Final = "write LOW..HIGH, LOW.. or LOW..HIGH:MULTIPLE, such as 1..64, 1.. or 8..512:8"
"""The hint of errors about the text of a range."""


@dataclass(frozen=True)
class Dim:
    """The sizes that a symbolic dimension may have: the multiples of `multiple` from `low` to `high`, both included.

        weft.compile("encoder.onnx", shapes={"batch": weft.Dim(1, 64), "seq": weft.Dim(8, 512, multiple=8)})

    Without `high` the range has no upper bound; with a `low` of 0, inputs may be empty. Calls with other sizes are refused. The
    compiler exploits the properties common to all sizes: a multiple of the vector length, for example, needs no remainder loop.
    The text form is `1..64`, `1..` or `8..512:8`.

    Raises `InputError` for an empty range.
    """

    low: int = 1
    high: int | None = None
    multiple: int = 1

    def __post_init__(self) -> None:
        for name, value, least in (("low", self.low, 0), ("high", self.high, 0), ("multiple", self.multiple, 1)):
            if value is None and name == "high":
                continue
            if type(value) is not int or value < least:
                raise InputError(f"a Dim has {name}={value!r}", hint=f"give a whole number, {least} or more")
        first, last = self.units
        if last is not None and first > last:
            raise InputError(f"there is no size in {self}", hint="give a low and a high with a multiple between them")

    @property
    def units(self) -> tuple[int, int | None]:
        """The smallest and the largest size, divided by `multiple`; the largest is None if there is no upper bound."""
        return -(-self.low // self.multiple), None if self.high is None else self.high // self.multiple

    @property
    def only(self) -> int | None:
        """The size, if the range has only one."""
        first, last = self.units
        return first * self.multiple if first == last else None

    def holds(self, size: int) -> bool:
        """Tells whether *size* is one of the sizes."""
        return self.low <= size and (self.high is None or size <= self.high) and size % self.multiple == 0

    @property
    def words(self) -> str:
        """The sizes in words, for messages: `8 to 512, a multiple of 8`."""
        ends = f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"
        return ends if self.multiple == 1 else f"{ends}, a multiple of {self.multiple}"

    def __str__(self) -> str:
        step = "" if self.multiple == 1 else f":{self.multiple}"
        return f"{self.low}..{'' if self.high is None else self.high}{step}"


def parse_dim(text: str) -> Dim:
    """Parses the text form of a range, such as `1..64`; raises `InputError` for any other text."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise InputError(f"{text[:40]!r} is no range of sizes", hint=EXAMPLES)
    low, high, multiple = found.groups()
    return Dim(int(low), None if high is None else int(high), int(multiple or 1))

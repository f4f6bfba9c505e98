"""Files damaged at random: what readers of formats are to refuse by an error of Weft's, whatever it is."""

from __future__ import annotations

import random
from collections.abc import Sequence


def damaged(random_: random.Random, data: bytes, marks: Sequence[bytes]) -> bytes:
    """Returns *data* with bytes left out, changed, repeated, or *marks* of its language put in, at one to four places."""
    made = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        at, kind = random_.randrange(len(made) + 1), random_.randrange(5)
        if kind == 0:
            del made[at : at + random_.randint(1, 30)]
        elif kind == 1:
            made[at:at] = random_.choice(marks)
        elif kind == 2:
            made[at : at + 1] = bytes([random_.randrange(256)])
        elif kind == 3:
            del made[at:]
        else:
            other = random_.randrange(len(made) + 1)
            made[at:at] = made[other : other + random_.randint(1, 60)]
    return bytes(made)

"""Random schedules for grids on whatever device OpenCL has, one program after another.

    python -m tests.schedule.fuzz.on_opencl --cases 3 4 5 [--without-barrier 0]

A simulator of devices is another driver of OpenCL, so this is what it is run on. With `--without-barrier`, a barrier of each case
is left out, and results don't matter.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import replace

from tests.lower.threaded import without_barrier
from tests.schedule.fuzz.grid_checking import OnDevice, check_run, grid_case

CAMPAIGN = 1


def main(arguments: list[str] | None = None) -> None:
    """Runs the cases that lowering takes, and tells how many these were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="+", required=True)
    parser.add_argument("--without-barrier", type=int)
    given = parser.parse_args(arguments)
    ran = 0
    for number in given.cases:
        c = grid_case(CAMPAIGN, number)
        if c.flat is None:
            continue
        whole = given.without_barrier is None
        kept = c if whole else replace(c, flat=without_barrier(c.flat, given.without_barrier))
        on = OnDevice([kept])
        with suppress(*([] if whole else [AssertionError])):
            check_run(kept, on.launch_of(0))
        on.device.close()
        ran += 1
    print(f"{ran} ran")


if __name__ == "__main__":
    main()

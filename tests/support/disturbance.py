"""Whether others disturb this machine, told by a program that is not ours.

NumPy's product is measured on one core, in turns with the core's own peak, which needs no memory. On a machine of one's own the
turns are alike and come near the peak; where others take their part of the caches or of the core, they are not, or do not. Then
what is said of our own programs' speed can't be judged.
"""

from __future__ import annotations

import os
import subprocess
import sys

from weft.driver.measure.peak import Peak
from weft.support.dtypes import f32

SHARE = 0.75
"""The part of the peak that NumPy's product reaches on a machine of one's own, at least."""

SPREAD = 1.25
"""How much longer the slowest turn takes than the fastest one there, at most."""

TURNS = 12

_PRODUCT = """
import sys, time
import numpy as np
n = 1024
a = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
a @ a
for _ in sys.stdin:
    start = time.process_time()
    a @ a
    print(2 * n**3 / (time.process_time() - start) / 1e9, flush=True)
"""


def disturbance() -> str | None:
    """Returns what tells that others disturb this machine; None where nothing does."""
    peak, limit, rates = 0.0, Peak(f32), []
    one_thread = {**os.environ, **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
    with subprocess.Popen(
        [sys.executable, "-c", _PRODUCT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread
    ) as numpy:
        assert numpy.stdin is not None
        assert numpy.stdout is not None
        for _ in range(TURNS):
            peak = max(peak, limit.rate(repeats=1, steps=1_000_000))
            numpy.stdin.write("\n")
            numpy.stdin.flush()
            rates.append(float(numpy.stdout.readline()))
        numpy.stdin.close()
    share, spread = max(rates) / peak, max(rates) / min(rates)
    if share >= SHARE and spread <= SPREAD:
        return None
    return (
        f"NumPy's product reaches {share:.0%} of the peak beside it, and its turns differ by a factor of {spread:.2f}"
    )

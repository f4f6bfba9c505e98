"""The process that makes kernels for another: `python -m weft.driver.groups.kernel_worker PARENT`, started by `KernelWorkers`.

Jobs come as pickles through the standard input, results go to the standard output. The process ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import replace

from weft.driver.groups.kernel_jobs import KernelJob, MadeKernel, carry_out_job
from weft.driver.python_settings import tuned_for_a_worker
from weft.support.worker_side import end_with, serve, take_pipes


def main(parent: int) -> None:
    """Makes kernels until the standard input ends."""
    end_with(parent)
    source, to = take_pipes()
    with tuned_for_a_worker():
        serve(source, to, answer)


def answer(request: bytes) -> bytes:
    """Carries out a pickled job; returns the pickle of a `MadeKernel`, or of an error in words, which the parent meets itself."""
    try:
        job: KernelJob = pickle.loads(request)
        made = carry_out_job(job)
    except Exception as error:
        return pickle.dumps(f"{type(error).__name__}: {error}")
    return pickle.dumps(MadeKernel(made.data, [replace(s, thread=os.getpid()) for s in made.spans]))


if __name__ == "__main__":
    main(int(sys.argv[1]))

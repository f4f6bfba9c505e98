"""The interpreter of threads: runs flat programs of grids, finds data races and missing barriers, and counts memory traffic."""

from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.one_block import check_block, kernels_of
from weft.codegen.interp.threads.races import DivergenceError, RaceError
from weft.codegen.interp.threads.thread_machine import run_threads

__all__ = ["Counters", "DivergenceError", "RaceError", "check_block", "kernels_of", "run_threads"]

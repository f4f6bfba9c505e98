"""The reference interpreter: runs any loop program, scheduled or not, as its definition says.

    run(program, {"A": a, "C": c, "n": 64})

Each function is translated once to Python source over NumPy arrays, in three layers: `expressions` and `statements` write the
source, `scalars`, `vectors` and `array_memory` have functions it calls, and `machine` runs it. Every access is checked against
its buffer's bounds, fresh memory is filled with NaN, and a fault names the statement and the values it met.
"""

from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.host_strings import Strings
from weft.codegen.interp.late_arrays import LateArrays
from weft.codegen.interp.machine import run

__all__ = ["ExecutionError", "LateArrays", "Strings", "run"]

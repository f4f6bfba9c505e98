"""Storage and lookup of tuning records: plans by workload and machine, and all that was measured.

It knows programs, plans and machines by their texts alone.
"""

from weft.records.json_lines import add_lines, lines_of
from weft.records.record import GRAPH, KERNEL, Entry, Hardware, Measurement, Record, Workload, workload_digest
from weft.records.recovery import Salvaged, salvage
from weft.records.store import Neighbour, Store, distance

__all__ = [
    "GRAPH", "KERNEL", "Entry", "Hardware", "Measurement", "Neighbour", "Record", "Salvaged", "Store", "Workload",
    "add_lines", "distance", "lines_of", "salvage", "workload_digest",
]

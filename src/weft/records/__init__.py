"""Storage and lookup of tuning records: plans by workload and machine, and all that was measured.

It knows programs, plans and machines by their texts alone.
"""

from weft.records.json_lines import add_lines, lines_of
from weft.records.record import GRAPH, KERNEL, Entry, Hardware, Measurement, Record, Workload, workload_digest
from weft.records.record_pack import (
    LEAST_GAIN, SHIPPED, Pack, is_clear_win, machines_with_winners, no_winners, pack_folder, pack_lines, winners_of,
)
from weft.records.recovery import Salvaged, salvage
from weft.records.store import Neighbour, Store, distance

__all__ = [
    "Entry", "GRAPH", "Hardware", "KERNEL", "LEAST_GAIN", "Measurement", "Neighbour", "Pack", "Record", "SHIPPED", "Salvaged",
    "Store", "Workload", "add_lines", "distance", "is_clear_win", "lines_of", "machines_with_winners", "no_winners",
    "pack_folder", "pack_lines", "salvage", "winners_of", "workload_digest",
]

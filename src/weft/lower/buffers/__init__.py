"""Passes over buffers: placement of allocations, compaction, flattening, register tiles."""

"""The rewriting engine of the graph passes, patterns of calls, and ranges of integer values."""

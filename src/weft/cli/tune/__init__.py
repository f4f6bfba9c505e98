"""`weft tune`: the command, its live table, and its report."""

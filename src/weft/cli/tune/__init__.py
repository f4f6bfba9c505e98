"""`weft tune`: the command, and what it shows while it searches."""

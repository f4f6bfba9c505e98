"""Products on factors that are rounded to fewer bits, which a compilation allows by its precision."""

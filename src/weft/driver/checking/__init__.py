"""Whether a compiled model computes as the reference says, and where it goes wrong if not (`weft compile --verify`)."""

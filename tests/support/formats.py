"""What `weft.compile` says that it reads."""

READS = (
)

"""Rules for machines that run grids of threads, chosen by the kind of a block, as those for processors are."""

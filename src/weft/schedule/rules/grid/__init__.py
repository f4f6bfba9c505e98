"""Schedule rules for grids of threads (GPUs), chosen by the kind of a block, like those for CPUs."""

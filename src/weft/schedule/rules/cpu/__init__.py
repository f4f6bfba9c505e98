"""Schedule rules for CPUs: one file for each class of block, and the parts that rules share."""

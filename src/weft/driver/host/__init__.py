"""The host program of a model: what runs its kernels, in order, over the memory that was planned."""

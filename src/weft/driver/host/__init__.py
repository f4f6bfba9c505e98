"""The host program of a model, which runs its kernels in order over the planned memory."""

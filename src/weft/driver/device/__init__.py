"""Models whose kernels run on a device: their host program launches kernels in its memory, and is replayed."""

"""The static memory plan: order of kernels, offsets in the arena, outputs computed in place."""

"""The static memory plan: order of kernels, places in the arena, results computed in place."""

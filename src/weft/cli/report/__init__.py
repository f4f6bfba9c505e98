"""`weft report`: a model's graphs, kernels, memory plan and loops, as one page for a browser."""

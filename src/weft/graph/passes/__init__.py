"""The graph passes, one a file; `graph.passes.pipeline` puts them in order."""

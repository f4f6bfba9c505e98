"""The graph passes, one a file; `graph.pipeline` puts them in order."""

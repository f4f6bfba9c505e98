"""Layout assignment: channel blocks as one problem over the graph, and Winograd plans."""

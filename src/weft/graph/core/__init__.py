"""The graph IR: values, nodes, graphs, their verifier and their text."""

"""Graph IR, its passes and the memory plan."""

"""The operator library: one file per family, one block per operator."""

"""Contractions in groups of neighbouring terms, as dot-product instructions take them, and the weights packed for them."""

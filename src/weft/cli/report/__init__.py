"""`weft report`: what became of a model, as one page for a browser."""

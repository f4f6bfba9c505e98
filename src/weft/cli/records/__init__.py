"""`weft records`: look into databases of tuning records, and keep them."""

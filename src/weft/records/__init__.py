"""Storage and lookup of tuning records."""

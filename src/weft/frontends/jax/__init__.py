"""JAX: functions lowered to StableHLO, whose text Weft reads itself."""

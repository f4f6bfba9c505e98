"""Translations of StableHLO's operations, a file for each family."""

"""Translations of MXNet's operators, a file for each family."""

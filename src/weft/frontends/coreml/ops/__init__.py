"""Translations of the operations of Core ML's programs, a file for each family."""

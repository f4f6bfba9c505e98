"""Translations of Darknet's layers, one file a family."""

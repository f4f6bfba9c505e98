"""Runs compiled models; importable without the compiler."""

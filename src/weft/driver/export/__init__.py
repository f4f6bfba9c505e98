"""Compiled models as other programs take them: objects, libraries, C source, and what is noted in artifacts."""

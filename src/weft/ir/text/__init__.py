"""The text form of expressions: printer and parser."""

"""Export of compiled models for other programs: objects, libraries, C source, and the notes in artifacts."""

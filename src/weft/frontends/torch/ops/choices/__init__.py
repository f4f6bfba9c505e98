"""Elements chosen by their places or by their order: gathered, scattered, sorted, counted."""

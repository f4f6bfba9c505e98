"""Search for schedules: spaces, features, cost models, measurement."""

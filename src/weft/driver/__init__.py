"""The pipeline from a model to code, on one screen: compile, load, artifact writing."""

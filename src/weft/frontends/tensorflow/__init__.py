"""TensorFlow: saved models and frozen graphs, read without TensorFlow."""

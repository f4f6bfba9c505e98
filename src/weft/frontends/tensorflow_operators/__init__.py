"""TensorFlow's operators, which its own formats and TensorFlow Lite have in common: calls, and their translations."""

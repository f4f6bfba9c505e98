"""TensorFlow Lite: models of one file, quantised ones among them, read without TensorFlow."""

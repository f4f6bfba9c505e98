"""Core ML: models of programs (.mlpackage) and of neural networks (.mlmodel), read by a protobuf reader of Weft's own."""

"""Reading ONNX files: the protobuf messages, the weights without copying them, and files of external data."""

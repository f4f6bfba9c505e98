"""Weft behind other people's interfaces: onnx.backend and ONNX Runtime's InferenceSession."""

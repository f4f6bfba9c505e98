"""Weft behind other people's interfaces: onnx.backend, InferenceSession, torch.compile."""

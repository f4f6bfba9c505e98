"""Translations of ONNX Runtime's own operators (`com.microsoft`), one file a family."""

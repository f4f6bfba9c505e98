"""Python where importing any layer of the compiler, llvmlite or onnx raises: the beginning of programs that load saved models."""

REFUSING = """
import sys
from importlib.abc import MetaPathFinder

ALLOWED = {"weft.native", "weft.runtime", "weft.support"}

class Refuse(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top, layer = name.split(".")[0], ".".join(name.split(".")[:2])
        if top in ("llvmlite", "onnx", "onnxruntime", "torch") or top == "weft" and name != "weft" and layer not in ALLOWED:
            raise ImportError(f"{name} is part of the compiler")

sys.meta_path.insert(0, Refuse())
"""

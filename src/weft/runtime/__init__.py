"""Runs compiled models; importable without the compiler."""

from weft.runtime.device_arrays import DeviceArray
from weft.runtime.model import Model, load
from weft.runtime.package import DeviceCode, Package, ProcessorCode, Replay, StateSpec, TensorSpec
from weft.runtime.model_state import State

__all__ = ["DeviceArray", "DeviceCode", "Model", "Package", "ProcessorCode", "Replay", "State", "StateSpec", "TensorSpec", "load"]

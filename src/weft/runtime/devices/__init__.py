"""Devices other than the CPU: the interface that a replayed host program needs, and its implementations."""

from weft.runtime.devices.device import Argument, Device, Launch
from weft.runtime.devices.cuda_kernel import dependent_symbol, dynamic_symbol
from weft.runtime.devices.cuda_library import compute_capability
from weft.runtime.devices.device_kinds import APIS, device_names, install_hint, open_device, why_missing
from weft.runtime.devices.device_table import DeviceTable
from weft.runtime.devices.opencl_library import FoundDevice as OpenCLDeviceFacts
from weft.runtime.devices.opencl_library import find_devices as opencl_devices

__all__ = [
    "APIS", "Argument", "Device", "DeviceTable", "Launch", "OpenCLDeviceFacts", "compute_capability", "device_names",
    "dependent_symbol", "dynamic_symbol", "install_hint", "open_device", "opencl_devices", "why_missing",
]

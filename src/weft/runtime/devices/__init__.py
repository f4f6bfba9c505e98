"""Devices beside the processor: what a replayed host program needs of one, and those that there are."""

from weft.runtime.devices.device import Argument, Device
from weft.runtime.devices.cuda_library import compute_capability
from weft.runtime.devices.device_kinds import APIS, device_names, install_hint, open_device, why_missing
from weft.runtime.devices.device_table import DeviceTable, Launch

__all__ = [
    "APIS", "Argument", "Device", "DeviceTable", "Launch", "compute_capability", "device_names", "install_hint", "open_device",
    "why_missing",
]

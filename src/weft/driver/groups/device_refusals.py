"""The nodes that a device can't have a kernel for, which lowering tells: those whose steps follow one another are lowered for it.

Where a processor is beside the device, that computes them.
"""

from __future__ import annotations

from weft.driver.device.inline_kernels import check_host_part
from weft.driver.kernel import lower_kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.graph import Group, Node
from weft.loop import Program
from weft.support.errors import InputError, LoweringError
from weft.targets import Target


class DeviceRefusals:
    """Tells whether *device* has no kernel for a node; equal nodes are lowered once."""

    def __init__(self, device: Target, options: CompileOptions) -> None:
        self._device, self._options = device, options
        self._known: dict[str, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Returns the answer for *node*."""
        group = Group((node,), node.outputs)
        if group.key not in self._known:
            self._known[group.key] = self._is_refused(group)
        return self._known[group.key]

    def _is_refused(self, group: Group) -> bool:
        request = KernelRequest(
            group.name, group.tensors, group.sizes, group.source, lift=True, passes=self._options.passes
        )
        try:
            flat = lower_kernel(request, self._device).forms.flat
            assert isinstance(flat, Program)  # only kernels of the cache have texts
            check_host_part(group.name, flat)
        except (InputError, LoweringError):
            return True
        return False

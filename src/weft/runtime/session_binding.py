"""Inputs and outputs bound to memory ahead of a call, in ONNX Runtime's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from weft.runtime.arrays import Array
from weft.runtime.model import Model
from weft.runtime.package import TensorSpec
from weft.runtime.session_values import OrtValue, OrtValueVector, array_of, at_address, check_device
from weft.support.errors import InputError


class HasModel(Protocol):
    """The owner of a binding: a session."""

    @property
    def model(self) -> Model:
        """The model that the session calls."""


class IOBinding:
    """The inputs and outputs of a call: bind each input, and each output that is wanted, then call `run_with_iobinding`.

    An output bound to memory is written there; one that is bound without gets new memory in every call. Bound memory is the
    caller's and must stay valid; it is read and written when the call is made.
    """

    def __init__(self, session: HasModel) -> None:
        """Makes an empty binding for a session's inputs and outputs, as `session.io_binding()` does."""
        self._specs: Final[Mapping[str, Mapping[str, TensorSpec]]] = {
            "input": {s.name: s for s in session.model.inputs},
            "output": {s.name: s for s in session.model.outputs},
        }
        self._inputs: dict[str, Array] = {}
        self._outputs: dict[str, Array | None] = {}
        self._made: list[Array] = []

    def _check(self, side: str, name: str) -> None:
        known = self._specs[side]
        if name not in known:
            raise InputError(
                f"there is no {side} {name!r}", hint=f"the model has {', '.join(map(str, known.values()))}"
            )

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Binds an input to an array."""
        self._check("input", name)
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: object, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds an input to memory: the address of a contiguous tensor of this type and shape."""
        check_device(device_type, device_id)
        self.bind_cpu_input(name, at_address(shape, element_type, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to a value."""
        self.bind_cpu_input(name, array_of(ortvalue))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output; given a type, a shape and an address, it is written there."""
        self._check("output", name)
        check_device(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = None
        elif element_type is None or shape is None:
            raise InputError(
                f"the memory for the output {name!r} has no type or shape", hint="give element_type and shape"
            )
        else:
            self._outputs[name] = at_address(shape, element_type, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output, to be written into a value."""
        self._check("output", name)
        self._outputs[name] = array_of(ortvalue)

    def synchronize_inputs(self) -> None:
        """Does nothing: inputs in the processor's memory are there already."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a call returns when its outputs are written."""

    def clear_binding_inputs(self) -> None:
        """Forgets all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Clears all output bindings and the outputs of the last call."""
        self._outputs.clear()
        self._made = []

    def get_outputs(self) -> list[OrtValue]:
        """Returns the bound outputs as the last call made them, in the order they were bound in."""
        return [OrtValue(array) for array in self._made]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Returns the same as a vector."""
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Returns copies of the bound outputs as the last call made them, in the order they were bound in."""
        return [array.copy() for array in self._made]


def bound_inputs(binding: IOBinding) -> dict[str, Array]:
    """Returns the arrays that inputs are bound to, by name."""
    return binding._inputs


def bound_outputs(binding: IOBinding) -> dict[str, Array | None]:
    """Returns the arrays that outputs are bound to, by name, or None where new ones are to be made."""
    return binding._outputs


def fill(binding: IOBinding, made: Mapping[str, Array]) -> None:
    """Stores the outputs of a call."""
    binding._made = [made[name] for name in binding._outputs]

"""Host programs run by the loop interpreter, as the runtime runs their compiled form: `plan`, then `main`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.codegen.interp import LateArrays, run
from weft.driver.build import Compilation
from weft.driver.device.inline_kernels import kernel_names
from weft.loop import Buffer, Entry, Function, Program, find_note, link_programs, parse_program
from weft.runtime.lazy_constants import in_memory
from weft.runtime.package import Package, StateSpec
from weft.support.dtypes import DType

Array = np.ndarray[Any, Any]


@dataclass
class InterpretedState:
    """A state as the interpreter works on it: the memory of all that it may have, and the shape that it has by now."""

    spec: StateSpec
    shape: list[int]
    memory: Array

    @property
    def value(self) -> Array:
        """The value as it is now."""
        return self.memory[tuple([slice(0, n) for n in self.shape])]


def new_states(package: Package) -> list[InterpretedState]:
    """Returns the states of a model as they are when they are new."""
    made, constants = [], memoryview(in_memory(package.constants))
    for spec, tensor in zip(package.states, package.state_inputs, strict=True):
        whole = [int(n) for n in tensor.shape]
        rows = 0 if spec.initial is None else spec.initial.rows
        shape = [rows if d == spec.axis else n for d, n in enumerate(whole)]
        state = InterpretedState(spec, shape, np.zeros(whole, tensor.dtype.numpy))
        if spec.initial is not None:
            value = np.frombuffer(constants, tensor.dtype.numpy, state.value.size, spec.initial.offset)
            state.value[...] = value.reshape(shape)
        made.append(state)
    return made


def linked(made: Compilation, host: Program | None = None) -> Program:
    """Returns a model's host program with its kernels' loops in the place of declarations, those of a device grid by grid."""
    code: dict[str, Program] = {}
    for key, k in made.kernels.items():
        flat = parse_program(k.flat)
        code[k.name] = flat
        if made.target_of(key).kind == "grid":
            names = kernel_names(k.name, k.symbol, flat)
            code |= {name: Program((f,)) for (_, name), f in zip(names, flat.functions[1:], strict=True)}
    return link_programs(host or made.host, code)


def interpret_model(
    program: Program, made: Compilation, inputs: Mapping[str, Array], states: Sequence[InterpretedState] = ()
) -> list[Array]:
    """Runs the linked host program of a model; its memory is sized by its own `plan`. Returns the outputs that are no states."""
    graph = made.fused.graph
    taken = graph.inputs[: len(graph.inputs) - len(states)]
    constants = np.frombuffer(memoryview(in_memory(made.package.constants)), np.uint8)
    given, kinds = [inputs[v.name] for v in taken], [v.dtype for v in graph.outputs]
    return interpret_host(program, given, kinds, constants, states)


def interpret_host(
    program: Program,
    inputs: Sequence[Array],
    outputs: Sequence[DType],
    constants: Array | None = None,
    states: Sequence[InterpretedState] = (),
) -> list[Array]:
    """Runs `plan` and `main` of a linked host program; the outputs' ranks are those of the parameters of `plan`.

    *states* are the last inputs and outputs: they are as the call left them when it is over.
    """
    given: dict[str, Any] = {"arena_needed": np.zeros(1, np.int64), "outside": np.zeros(1, np.int32)}
    for n, (x, shape) in enumerate([*[(x, x.shape) for x in inputs], *[(s.memory, s.shape) for s in states]]):
        given |= {f"in{n}": np.ascontiguousarray(x).reshape(-1), f"in{n}.shape": np.array(shape, np.int64)}
        given |= {f"in{n}.{d}": size for d, size in enumerate(shape)}
    plan = _entries(program)["plan"]
    for word, p in zip(_words(plan), plan.params, strict=True):
        if word.startswith("out") and isinstance(p, Buffer):
            given[word] = np.zeros(int(p.shape[0].value), np.int64)  # type: ignore[attr-defined]
    run(program, [given[w] for w in _words(plan)], plan.name)
    given["arena"] = np.zeros(max(0, int(given["arena_needed"][0])), np.uint8)
    late = LateArrays()
    made = {
        n: np.zeros([int(size) for size in given[f"out{n}.shape"]], t.numpy)
        for n, t in enumerate(outputs)
        if min(given[f"out{n}.shape"], default=0) >= 0
    }
    first = len(outputs) - len(states)
    for n, s in enumerate(states, first):
        made[n] = s.memory if s.spec.in_place else np.zeros_like(s.memory)
    given |= {f"out{n}": x.reshape(-1) for n, x in made.items()}
    main = _entries(program)["main"]
    given["constants"] = np.zeros(0, np.uint8) if constants is None else constants
    for word, p in zip(_words(main), main.params, strict=True):
        if word.startswith("constants") and isinstance(p, Buffer):
            given[word] = given["constants"][: int(p.shape[0].value)]  # type: ignore[attr-defined]
    run(program, [given[w] for w in _words(main)], main.name, late=late)
    made |= late.outputs
    for n, s in enumerate(states, first):
        s.memory, s.shape = made[n], [int(size) for size in given[f"out{n}.shape"]]
    return [made[n] for n in range(first)]


def _entries(program: Program) -> dict[str, Function]:
    return {note.kind: f for f in program.functions if (note := find_note(f.notes, Entry)) is not None}


def _words(f: Function) -> tuple[str, ...]:
    note = find_note(f.notes, Entry)
    assert note is not None
    return note.args

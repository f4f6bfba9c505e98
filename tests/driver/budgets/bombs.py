"""Small models that make a compiler work beyond measure, and a process that compiles them within limits of memory and time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET = 20

_COMPILE = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
import numpy as np
import weft

def peak():
    line = next(s for s in open("/proc/self/status") if s.startswith("VmHWM"))
    return int(line.split()[1]) >> 10

try:
    weft.compile(sys.argv[1], cache=False)  # loads the compiler
except weft.WeftError:
    pass
for path in sys.argv[2:]:
    before, start = peak(), time.process_time()
    said = ""
    try:
        weft.compile(path, cache=False)
    except weft.WeftError as error:
        said = f"{type(error).__name__}: {error}"
    except BaseException as error:
        said = f"not an error of Weft: {error!r}"
    print(json.dumps([said, time.process_time() - start, peak() - before]), flush=True)
"""


class Outcome(NamedTuple):
    """What compiling a model came to: the error's text (empty for none), seconds of CPU time, and growth of the peak in MB."""

    said: str
    seconds: float
    megabytes: int


def compile_apart(models: Sequence[ModelProto], folder: Path, seconds: float = 400) -> list[Outcome]:
    """Compiles *models* one after the other in a process of their own, which is ended after *seconds*."""
    first = chain(1, lambda a, b: [helper.make_node("Abs", [a], [b])])
    paths = []
    for k, model in enumerate([first, *models]):
        paths.append(str(folder / f"{k}.onnx"))
        Path(paths[-1]).write_bytes(model.SerializeToString())
    command = [sys.executable, "-c", _COMPILE, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds)
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]


def tensor(name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> ValueInfoProto:
    """Returns a value's declaration."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model_of(
    nodes: Sequence[NodeProto],
    output: str,
    inputs: Sequence[ValueInfoProto] = (tensor("v0", [4, 5]),),
    dtype: int = TensorProto.FLOAT,
    constants: dict[str, object] | None = None,
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    """Returns a model of one output, of unknown shape."""
    weights = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    out = helper.make_value_info(output, helper.make_tensor_type_proto(dtype, None))
    graph = helper.make_graph(nodes, "bomb", inputs, [out], weights)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)


def chain(count: int, link: Callable[[str, str], list[NodeProto]], **facts: object) -> ModelProto:
    """Returns a model of *count* times the nodes that *link* makes of the names of an input and an output: v0, v1 ..."""
    nodes = [n for k in range(count) for n in link(f"v{k}", f"v{k + 1}")]
    return model_of(nodes, f"v{count}", **facts)  # type: ignore[arg-type]


def twice(op: str) -> Callable[[str, str], list[NodeProto]]:
    """Returns the link of a chain that applies *op* to one value twice."""
    return lambda a, b: [helper.make_node(op, [a, a], [b])]

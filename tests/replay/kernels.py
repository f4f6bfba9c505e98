"""What the compiler makes of a model, kernel by kernel, as text; no machine code is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import onnx

from weft.codegen.llvm.ir_module import llvm_text
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, plan_calls, values_in_place
from weft.driver.host.entry import entry_program, place_constants
from weft.driver.kernel import lower_kernel
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.loop import canonical_text, print_program
from weft.targets import Target

STAGES = ("loops", "scheduled", "lowered", "llvm")
"""What is kept of a kernel: its program at each stage, and of the LLVM IR, which is far longer, the hash."""


@dataclass(frozen=True)
class Stages:
    """A kernel, or the entry program of a model, after each stage of the compiler; `llvm` is the SHA-256 of the LLVM IR."""

    name: str
    loops: str
    scheduled: str
    lowered: str
    llvm: str

    def hashes(self) -> tuple[str, ...]:
        """Returns a short hash for each stage."""
        return (*[digest(getattr(self, stage)) for stage in STAGES[:-1]], self.llvm[:12])


def digest(text: str) -> str:
    """Returns a short hash of *text*."""
    return sha256(text.encode()).hexdigest()[:12]


def stages_of(model: onnx.ModelProto, target: Target) -> Iterator[Stages]:
    """Yields each distinct kernel of *model* in the order of their first calls, and the entry program at the end."""
    options = CompileOptions()
    fused = fuse_graph(optimize_graph(to_graph(model), target, options, cache=None), target, options)
    in_place = values_in_place(fused, options, target)
    names: dict[str, str] = {}
    workspaces: dict[str, tuple[int, ...]] = {}
    count: Counter[str] = Counter()
    for key, request in kernel_requests(fused, options, in_place).items():
        made = lower_kernel(request, target)
        count[request.name] += 1
        names[key] = f"{request.name}.{count[request.name]}"
        workspaces[key] = made.workspaces
        loops = canonical_text(request.program)
        yield Stages(
            names[key],
            loops,
            str(made.forms.scheduled),
            str(made.forms.flat),
            sha256(made.source.text.encode()).hexdigest(),
        )
    plan = plan_calls(fused, workspaces, options, in_place)
    entry = entry_program(fused, plan, place_constants(fused), names)
    text = llvm_text(entry, target)
    yield Stages("entry", "", "", print_program(entry), sha256(text.encode()).hexdigest())

"""Layers of the TVM paper as tasks of a tuner: the kernel that computes the convolution directly, with blocked channels."""

from __future__ import annotations

from weft.cli.onnx_builder import GraphBuilder, conv, gemm
from weft.cost import Rule, Step
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.targets import Target
from weft.tune.tasks import Task, task_of

LAYERS = {
    "C2": (56, 64, 64, 3, 1, 1),
    "C4": (56, 64, 128, 3, 2, 1),
    "C6": (28, 128, 128, 3, 1, 1),
    "C9": (14, 256, 256, 3, 1, 1),
    "C12": (7, 512, 512, 3, 1, 1),
    "D3": (56, 128, 128, 3, 1, 128),
    "GEMM256": (256, 256, 256, 0, 0, 0),
    "GEMM384": (384, 384, 384, 0, 0, 0),
    "GEMM512": (512, 512, 512, 0, 0, 0),
    "GEMM1024": (1024, 1024, 1024, 0, 0, 0),
}
"""Height and width, channels in and out, window, stride, groups; a matrix product has its sizes alone."""


def layer_task(name: str, target: Target) -> Task:
    """Return the task of the kernel of layer *name* that has the multiplications."""
    size, inner, outer, kernel, stride, groups = LAYERS[name]
    g = GraphBuilder(name)
    if kernel == 0:
        x = g.input("x", (size, inner))
        g.output(gemm(g, x, (inner, outer)), "y")
    else:
        x = g.input("x", (1, inner, size, size))
        g.output(conv(g, x, (inner, outer), kernel, stride, padding=kernel // 2, groups=groups), "y")
    options = CompileOptions(precision="strict")  # no Winograd: all tuners search one kernel
    fused = fuse_graph(optimize_graph(to_graph(g.model()), target, options, None), target, options)
    tasks = [
        task_of(r, target) for r in kernel_requests(fused, options, values_in_place(fused, options, target)).values()
    ]
    return next(t for t in tasks if any(isinstance(s.decision, Rule) for s in t.plan.steps))


def sketches_of(task: Task) -> list[Step]:
    """Return the decisions by which a task's search has sketches alone: schedules that no rule has touched."""
    return [Step(s.subject, Rule("sketch")) for s in task.plan.steps if isinstance(s.decision, Rule)]

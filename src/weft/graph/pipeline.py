"""The graph passes in their order: one line a pass, each timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from weft.graph.evaluator import Evaluator
from weft.graph.graph import Graph
from weft.graph.passes.choose_layouts import choose_layouts
from weft.graph.passes.choose_transposed_winograd import choose_transposed_winograd
from weft.graph.passes.choose_winograd import choose_winograd
from weft.graph.passes.drop_idle_taps import drop_idle_taps
from weft.graph.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from weft.graph.passes.eliminate_dead_code import eliminate_dead_code
from weft.graph.passes.fold_constants import fold_constants
from weft.graph.passes.fold_scale_and_shift import fold_scale_and_shift
from weft.graph.passes.guard_indices import guard_indices
from weft.graph.passes.lower_dilated_convolutions import lower_dilated_convolutions
from weft.graph.passes.lower_pointwise_convolutions import lower_pointwise_convolutions
from weft.graph.passes.lower_transposed_convolutions import lower_transposed_convolutions
from weft.graph.passes.lower_volume_convolutions import lower_volume_convolutions
from weft.graph.passes.merge_axes import merge_axes
from weft.graph.passes.merge_rows import merge_rows
from weft.graph.passes.pack_matrices import pack_matrices
from weft.graph.passes.recognize_layer_norm import recognize_layer_norm
from weft.graph.passes.simplify import simplify
from weft.targets.target import Target


@dataclass(frozen=True)
class Options:
    """What the passes may do.

    Keep channels in blocks, pack matrices, compute convolutions by Winograd's method, pack weights while compiling (`prepack`),
    and, unless `exact`, round otherwise than the model (as Winograd's method does, and folding a normalization into weights).
    """

    layouts: bool = True
    pack: bool = True
    winograd: bool = True
    prepack: bool = True
    exact: bool = False


@dataclass
class Report:
    """What each pass took, in seconds, and how many nodes it left."""

    rows: list[tuple[str, float, int]] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(f"{name:<34} {seconds * 1e3:9.2f} ms {nodes:6} nodes\n" for name, seconds, nodes in self.rows)


def optimize(
    graph: Graph, target: Target, evaluator: Evaluator, options: Options | None = None, report: Report | None = None
) -> Graph:
    """Returns *graph* made fast for *target*; *evaluator* computes constants, *report* receives the times."""
    chosen = options if options is not None else Options()
    for name, run in passes(target, evaluator, chosen):
        start = time.perf_counter()
        graph = run(graph)
        if report is not None:
            report.rows.append((name, time.perf_counter() - start, len(graph.nodes)))
    return graph


def passes(target: Target, evaluator: Evaluator, options: Options) -> list[tuple[str, Callable[[Graph], Graph]]]:
    """Returns the passes in order, each with its name."""
    by_winograd = options.winograd and not options.exact
    return [
        ("eliminate_dead_code", eliminate_dead_code),
        ("fold_constants", lambda g: fold_constants(g, evaluator)),
        ("guard_indices", guard_indices),
        ("recognize_layer_norm", lambda g: g if options.exact else recognize_layer_norm(g)),
        ("simplify", lambda g: simplify(g, exact=options.exact)),
        ("eliminate_common_subexpressions", eliminate_common_subexpressions),
        ("fold_scale_and_shift", lambda g: g if options.exact else fold_scale_and_shift(g)),
        ("drop_idle_taps", lambda g: drop_idle_taps(g, evaluator)),
        ("lower_volume_convolutions", lambda g: lower_volume_convolutions(g, evaluator)),
        (
            "lower_dilated_convolutions",
            lambda g: lower_dilated_convolutions(g, target) if by_winograd and options.layouts else g,
        ),
        (
            "lower_transposed_convolutions",
            lambda g: lower_transposed_convolutions(g, target, evaluator, blocks=options.layouts),
        ),
        ("choose_layouts", lambda g: choose_layouts(g, target, by_winograd=by_winograd) if options.layouts else g),
        ("lower_pointwise_convolutions", lower_pointwise_convolutions),
        ("choose_winograd", lambda g: choose_winograd(g, target) if by_winograd else g),
        ("choose_transposed_winograd", lambda g: choose_transposed_winograd(g, target) if by_winograd else g),
        ("merge_axes", lambda g: merge_axes(g, target)),
        ("merge_rows", merge_rows),
        ("pack_matrices", lambda g: pack_matrices(g, target) if options.pack else g),
        ("simplify_packed", lambda g: simplify(g, exact=options.exact)),
        ("fold_packed_constants", lambda g: fold_constants(g, evaluator, defer=True) if options.prepack else g),
    ]

"""Takes the places of a dilated convolution apart into images in which its taps are neighbours, for Winograd's method.

    y = conv2d(x[N, C, H, W], w, dilations=(2, 2), pads=(2, 2, 2, 2))
    becomes
    p = transpose(reshape(pad(x), [N, C, H/2, 2, W/2, 2]))      [N, 2, 2, C, H/2, W/2], each phase an image
    q = conv2d(p, w, pads=(1, 1, 1, 1))
    y = the phases of q, put together again

It is done where Winograd's method on the phases takes less, with all that is moved, than the convolution as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from weft.cost import Candidate, DilationPhases, Planner, dilation_plans, multiply_cycles, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.layout.winograd_plans import Channels, best_by_winograd, layer_at, part_of_whole
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.support.dtypes import f32
from weft.targets import Target

PHASES_FIRST = (0, 3, 5, 1, 2, 4)
PHASES_LAST = (0, 3, 4, 1, 5, 2)


def lower_dilated_convolutions(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with convolutions over phases for dilated ones where *planner* decides so."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if not _can_be_phases(node):
            return None
        decided = planner.decide(subject_of(node.output.name), DilationPhases, lambda machine: _plans(node, machine))
        return [_by_phases(new, node, inputs)] if decided.apart else None

    return rewrite_graph(graph, rule)


def _can_be_phases(node: Node) -> bool:
    """Tells whether *node* is a convolution of known weights and a size that can be estimated, whose phases are convolutions."""
    x, w = node.inputs[0] if node.inputs else None, node.inputs[1] if len(node.inputs) > 1 else None
    if node.op != "conv2d" or x is None or not isinstance(w, Constant) or node.output.rank != 4 or x.dtype is not f32:
        return False
    return node.output.sample_shape is not None and x.sample_shape is not None and _has_phases(node)


def _plans(node: Node, target: Target) -> list[Candidate[DilationPhases]]:
    """Returns the choices for a convolution: its phases by Winograd's method if that applies, or the whole directly."""
    x, w, made, lanes = node.inputs[0], node.inputs[1], node.output.sample_shape, target.lanes(32)
    assert x is not None and x.sample_shape is not None and made is not None  # noqa: PT018  (_can_be_phases asks for it)
    assert isinstance(w, Constant)
    dilations = node.attribute("dilations")
    height, width = _of_a_phase(made[2:], dilations)
    images, (outputs, inputs, *kernel) = made[0] * prod(dilations), w.extents
    layer = layer_at((images, height, width), (1, 1), Channels(w.extents, lanes, lanes))
    part = part_of_whole(node, x.sample_shape[2:], made[2:], kernel)
    direct = multiply_cycles(prod(made) * inputs * prod(kernel) * part, 32, target)
    phases = inf if layer is None else best_by_winograd(layer, target)
    return dilation_plans(direct, phases, images * height * width * (inputs + outputs))


def _has_phases(node: Node) -> bool:
    """Tells whether each phase of a convolution is one by itself: dilated, of stride 1, in one group, padded by whole steps."""
    dilations, pads = node.attribute("dilations"), node.attribute("pads")
    is_dense = set(node.attribute("strides")) == {1} and node.attribute("group") == 1
    return is_dense and max(dilations) > 1 and not any(p % d for p, d in zip(pads, dilations, strict=False))


def _by_phases(new: Graph, node: Node, inputs: Inputs) -> Value:
    """Returns the convolution *node*, computed for each phase of its places."""
    x, w = inputs[0], inputs[1]
    assert x is not None  # a convolution reads something
    assert isinstance(w, Constant)  # _can_be_phases asks for it
    (dy, dx), pads = node.attribute("dilations"), node.attribute("pads")
    sample, result = x.sample_shape, node.output.sample_shape
    assert sample is not None  # as is that of the output
    assert result is not None
    read, written = _of_a_phase(sample[2:], (dy, dx)), _of_a_phase(result[2:], (dy, dx))
    begin = [p // d for p, d in zip(pads, (dy, dx), strict=False)]
    end = [q - r - b + k - 1 for q, r, b, k in zip(written, read, begin, w.extents[2:], strict=True)]
    missing = [r * d - n for r, d, n in zip(read, (dy, dx), sample[2:], strict=True)]
    if any(missing):
        x = new.add("pad", [x], pads=(0, 0, 0, 0, 0, 0, *missing), source=node.source)
    n, channels, outputs = x.shape[0], x.shape[1], w.extents[0]
    x = new.add("reshape", [x], shape=(n, channels, read[0], dy, read[1], dx), source=node.source)
    x = new.add("transpose", [x], perm=PHASES_FIRST, source=node.source)
    x = new.add("reshape", [x], shape=(n * (dy * dx), channels, *read), source=node.source)
    y = new.add("conv2d", [x, w, *inputs[2:]], source=node.source, pads=(*begin, *end))
    y = new.add("reshape", [y], shape=(n, dy, dx, outputs, *written), source=node.source)
    y = new.add("transpose", [y], perm=PHASES_LAST, source=node.source)
    whole, name = (written[0] * dy, written[1] * dx), node.output.name
    if whole == result[2:]:
        return new.add("reshape", [y], shape=(n, outputs, *whole), source=node.source, name=name)
    y = new.add("reshape", [y], shape=(n, outputs, *whole), source=node.source)
    return new.add("slice", [y], starts=(0, 0), ends=result[2:], axes=(2, 3), source=node.source, name=name)


def _of_a_phase(sizes: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Returns the places of a phase in each dimension: of the longest one."""
    return [-(-n // d) for n, d in zip(sizes, dilations, strict=True)]

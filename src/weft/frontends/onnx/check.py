"""Checks of a model before it is imported: versions, names, order, and whether all its operators are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from weft.frontends.onnx.model_node import DAMAGED, domain_of, source_of
from weft.frontends.onnx.registry import NEWEST_OPSET, TABLE
from weft.frontends.unsupported import unsupported_operators
from weft.support.errors import ModelError


def opsets_of(model: ModelProto | FunctionProto) -> dict[str, int]:
    """Returns the operator-set version of each domain; raises `ModelError` for no version, and a default one that is too new."""
    found: dict[str, int] = {}
    for o in model.opset_import:
        domain = "" if o.domain == "ai.onnx" else o.domain
        if found.setdefault(domain, o.version) != o.version:
            raise ModelError(
                f"the model uses operator sets {found[domain]} and {o.version} of {domain or 'ONNX'} at once",
                hint=DAMAGED,
            )
    for domain, version in found.items():
        if not 1 <= version < 1 << 31:
            raise ModelError(
                f"the model uses operator set {version} of {domain or 'ONNX'}, which is no version", hint=DAMAGED
            )
    if found.get("", 1) > NEWEST_OPSET:
        raise ModelError(
            f"the model uses ONNX operator set {found['']}; the newest that Weft knows is {NEWEST_OPSET}",
            hint=f"export it again with opset_version={NEWEST_OPSET} or lower",
        )
    return found


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yields the graphs among a node's attributes."""
    for a in node.attribute:
        if a.type == AttributeProto.GRAPH:
            yield a.g
        elif a.type == AttributeProto.GRAPHS:
            yield from a.graphs


def nested_nodes(graph: GraphProto | FunctionProto) -> Iterator[tuple[NodeProto, int]]:
    """Yields the nodes of *graph* and of the graphs nested in it, each with the number of graphs around it."""
    pending = [(node, 0) for node in reversed(graph.node)]
    while pending:
        node, level = pending.pop()
        yield node, level
        for inner in subgraphs(node):
            pending += [(n, level + 1) for n in reversed(inner.node)]


class Expands(Protocol):
    """Knows the operators that are functions of others."""

    def is_known(self, node: NodeProto, opset: int) -> bool:
        """Tells whether *node* calls a function."""

    def nodes(self, node: NodeProto, opset: int) -> Iterable[NodeProto]:
        """Yields the nodes of the function that *node* calls."""


def check_operators(graph: GraphProto | FunctionProto, opsets: Mapping[str, int], functions: Expands) -> None:
    """Raises `UnsupportedOperators`, listing all of them, unless every operator is in the table or a function."""
    missing: dict[tuple[str, str], list[NodeProto]] = {}
    expanded: set[tuple[str, str]] = set()
    pending = [node for node, _ in nested_nodes(graph)]
    while pending:
        node = pending.pop()
        key = (domain_of(node), node.op_type)
        if functions.is_known(node, opsets.get(key[0], 1)):
            pending += [] if key in expanded else [*functions.nodes(node, opsets.get(key[0], 1))]
            expanded.add(key)
        elif key not in TABLE:
            missing.setdefault(key, []).insert(0, node)
    if not missing:
        return
    raise unsupported_operators(
        {_label(key, opsets): [_name(n) for n in nodes] for key, nodes in sorted(missing.items())},
        "`python -m weft.frontends.onnx.table` lists those it has; export the model without these, "
        "or as functions of ONNX's standard operators; weft.register_op gives Weft a formula of one, and "
        "`weft inspect MODEL --support` prints it to be filled in",
    )


def _label(key: tuple[str, str], opsets: Mapping[str, int]) -> str:
    domain, name = key
    return f"{name} ({domain or 'ai.onnx'} {opsets.get(domain, '(not imported)')})"


def _name(node: NodeProto) -> str:
    return node.name or (node.output[0] if node.output else "?")


def in_order(graph: GraphProto | FunctionProto, known: Iterable[str]) -> list[NodeProto]:
    """Returns the nodes so that each follows those it reads; *known* are the names given from outside.

    Raises `ModelError` for a value made twice, one that nothing makes, or a cycle.
    """
    makers = _makers(graph)
    outside = set(known)
    missing = [(n, v) for n in graph.node for v in _reads(n) if v not in makers and v not in outside]
    if missing:
        node, value = missing[0]
        raise ModelError(
            f"reads {value!r}, which no node of the model makes",
            where=source_of(node),
            hint="the model is damaged or was cut; check it with onnx.checker.check_model",
        )
    return _sorted(graph, makers)


def check_outputs(graph: GraphProto, known: Iterable[str]) -> None:
    """Raises `ModelError` for an output of *graph* that is none of the *known* names."""
    made = set(known)
    for out in graph.output:
        if out.name not in made:
            raise ModelError(
                f"the output {out.name!r} is not made by any node",
                where=graph.name or None,
                hint="the model is damaged or was cut; check it with onnx.checker.check_model",
            )


def _makers(graph: GraphProto | FunctionProto) -> dict[str, NodeProto]:
    makers: dict[str, NodeProto] = {}
    for node in graph.node:
        for v in filter(None, node.output):
            if v in makers:
                raise ModelError(
                    f"makes {v!r}, which {source_of(makers[v])} makes already",
                    where=source_of(node),
                    hint="every value of an ONNX model has one maker; rename one of them",
                )
            makers[v] = node
    return makers


def _reads(node: NodeProto) -> list[str]:
    """Returns the names that a node reads, those of the surrounding graph that its nested graphs capture included."""
    return [v for v in node.input if v] + [v for g in subgraphs(node) for v in captured(g)]


def captured(graph: GraphProto) -> list[str]:
    """Returns the names that a nested graph takes from the graph around it."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {v for n in graph.node for v in n.output}
    read = [v for n in graph.node for v in _reads(n)] + [o.name for o in graph.output]
    return [v for v in dict.fromkeys(read) if v not in own]


def _sorted(graph: GraphProto | FunctionProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    """Sorts nodes topologically, keeping the model's order where it is right; raises `ModelError` for a cycle."""
    done: dict[int, NodeProto] = {}
    position = {id(n): k for k, n in enumerate(graph.node)}
    for root in graph.node:
        stack = [(root, False)]
        open_: set[int] = set()
        while stack:
            node, ready = stack.pop()
            if id(node) in done:
                continue
            if ready:
                done[id(node)] = node
                open_.discard(id(node))
                continue
            if id(node) in open_:
                raise _cycle(graph, makers, node)
            open_.add(id(node))
            stack.append((node, True))
            before = {id(makers[v]): makers[v] for v in _reads(node) if v in makers}
            stack += [(before[k], False) for k in sorted(before, key=lambda k: -position[k]) if k not in done]
    return list(done.values())


def _cycle(graph: GraphProto | FunctionProto, makers: Mapping[str, NodeProto], start: NodeProto) -> ModelError:
    """Describes a cycle through *start* by the names of its nodes."""
    previous: dict[int, NodeProto] = {}
    queue = [start]
    while queue:
        node = queue.pop(0)
        for before in [makers[v] for v in _reads(node) if v in makers]:
            if before is start:
                names = [source_of(start)]
                while node is not start:
                    names.append(source_of(node))
                    node = previous[id(node)]
                return ModelError(
                    f"the nodes {' -> '.join([*names, names[0]])} form a cycle",
                    where=graph.name or None,
                    hint="an ONNX graph must have none; write a recurrence with Loop or Scan",
                )
            if id(before) not in previous:
                previous[id(before)] = node
                queue.append(before)
    raise AssertionError("there is no cycle through the node")

"""A fused graph: groups of nodes that become one kernel each, and aliases, values that are views of the memory of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from weft.graph.core.conditions import LateSize
from weft.graph.core.graph import Attribute, Graph, Node, infer
from weft.graph.core.graph_values import Constant, Value
from weft.graph.core.symbols import symbols_in, variables_of
from weft.graph.core.type_text import attribute_text, type_text
from weft.graph.fusion.reads_inside import is_total
from weft.graph.fusion.size_cases import SizeCase, has_zeros, has_zeros_in_sum, is_exactly
from weft.ir import ONE, ZERO, Bounds, Expr, Var, all_of, const, free_vars, simplify, substitute
from weft.ops import TensorType, simplify_size
from weft.support.errors import WeftError
from weft.te import Compute, Operation, Placeholder, Tensor, compute, placeholder, reads_of, topological

LONGEST_NAME = 60


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes computed by one kernel, in topological order, or a node of control flow, whose `regions` have kernels of their own.

    `inputs` are the values that it reads from memory; constants of one element are part of its formulas instead. `sizes` are the
    symbolic sizes of its shapes. Two groups with equal `key` compute the same function of their inputs and sizes, in order. In a
    model for a device, some may be computed `on_processor`, that of the host.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    regions: tuple[FusedGraph, ...] = ()
    on_processor: bool = False

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The values read from memory, in order of first use."""
        inside = {v for n in self.nodes for v in n.outputs}
        read = [v for n in self.nodes for v in n.inputs if v is not None and v not in inside]
        return tuple(dict.fromkeys(v for v in read if self.regions or not is_literal(v)))

    @cached_property
    def sizes(self) -> tuple[Var, ...]:
        """The symbolic sizes, in order of first use in the inputs, then the outputs, then the attributes."""
        shapes = [s for v in (*self.inputs, *self.outputs) for s in v.shape]
        attributes = [e for n in self.nodes for e in symbols_in(n.attributes)]
        return tuple(dict.fromkeys(v for e in [*shapes, *attributes] for v in free_vars(e)))

    @property
    def name(self) -> str:
        """A readable name: the operators, joined."""
        ops = "_".join(n.op for n in self.nodes)
        return ops if len(ops) <= LONGEST_NAME else f"{ops[:LONGEST_NAME]}_{len(self.nodes)}"

    @property
    def source(self) -> str:
        """The nodes of the user's model that the group computes."""
        return ", ".join(dict.fromkeys(n.source for n in self.nodes if n.source))

    @cached_property
    def key(self) -> str:
        """A canonical description, equal for equal workloads: values and symbolic sizes are numbered in order of use."""
        names = {v: f"p{i}" for i, v in enumerate(self.inputs)}
        sizes = {v: f"s{i}" for i, v in enumerate(self.sizes)}
        lines = [f"({', '.join(f'{names[v]}: {type_text(v.type, sizes)}' for v in self.inputs)})"]
        lines += [f"{name} in {v.limits}" for v, name in sizes.items() if v.limits is not None]
        for k, n in enumerate(self.nodes):
            names.update((v, f"t{k}.{v.index}") for v in n.outputs)
            args = ["-" if v is None else names[v] if v in names else _literal_text(v) for v in n.inputs]
            attributes = [f"{name}={attribute_text(a, sizes)}" for name, a in n.attributes]
            lines.append(f"t{k} = {n.op}({', '.join(args + attributes)})")
        where = ["on the processor"] if self.on_processor else []
        return "; ".join([*lines, *where, f"return {', '.join(names[v] for v in self.outputs)}"])

    def tensors(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Returns the tensor expressions of the inputs (placeholders `p0`, `p1`, ...) and the outputs."""
        made: dict[Value, Tensor] = {v: placeholder(v.shape, v.dtype, f"p{i}") for i, v in enumerate(self.inputs)}
        for n in self.nodes:
            given = [None if v is None else made[v] if v in made else _literal_tensor(v) for v in n.inputs]
            made.update(zip(n.outputs, n.operator(given, n.keywords), strict=True))
        return tuple([made[v] for v in self.inputs]), tuple([made[v] for v in self.outputs])

    def is_empty_where_zero(self, size: Var) -> bool:
        """Tells whether all outputs are empty where *size* is zero."""
        zero = {size: ZERO}
        return all(any(simplify(substitute(s, zero)) is ZERO for s in v.shape) for v in self.outputs)

    @property
    def is_total(self) -> bool:
        """Whether all elements can certainly be computed, whatever the sizes are: none is read from a tensor without elements."""
        return all(is_total(op, self.sizes) for op in topological(self.tensors()[1]) if not isinstance(op, Placeholder))

    def where(self, case: SizeCase) -> Group | None:
        """Returns the same computation in a case of sizes: of other types, of the same values in order; None if there is none.

        Kernels compute with sizes of at least one, so that where one is zero it takes a kernel of its own, such as one that
        writes the sum of nothing.
        """
        values = case.values

        def changed(a: Attribute) -> Attribute:
            if isinstance(a, tuple):
                return tuple([changed(x) for x in a])
            return simplify_size(substitute(a, values)) if isinstance(a, Expr) else a

        def typed(t: TensorType) -> TensorType:
            return TensorType(tuple([simplify_size(substitute(s, values)) for s in t.shape]), t.dtype)

        made: dict[Value, Value] = {v: Value(v.name, typed(v.type)) for v in self.inputs}
        nodes: list[Node] = []
        try:
            for n in self.nodes:
                given = tuple([None if v is None else made.get(v, v) for v in n.inputs])
                attributes = tuple([(k, changed(a)) for k, a in n.attributes])
                types = infer(n.operator, given, attributes, n.source)
                nodes.append(Node(n.operator, given, attributes, types, [v.name for v in n.outputs], n.source))
                made.update(zip(n.outputs, nodes[-1].outputs, strict=True))
            group = Group(tuple(nodes), tuple([made[v] for v in self.outputs]), on_processor=self.on_processor)
            return None if any(map(_reads_nothing, topological(group.tensors()[1]))) else group
        except WeftError:
            return None

    def __repr__(self) -> str:
        return f"Group({self.name} -> {', '.join(v.name for v in self.outputs)})"


@dataclass(frozen=True)
class Alias:
    """A value that is a row-major view of the memory of *source*, from the element *offset* on."""

    source: Value
    offset: int


@dataclass(frozen=True, eq=False)
class Version:
    """A *group* that replaces another where *condition* holds (multi-versioning); *sizes* are the arguments for its own sizes."""

    group: Group
    condition: Expr
    sizes: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class FusedGraph:
    """Groups in an order in which they can run, and `aliases`: values that need no memory and no kernel of their own.

    Groups that are keys of `cases` have a kernel for each of these. In the body of a loop, `updates` are the values, the last
    first, that are in the memory of a state, by its number, which an iteration updates where it is.
    """

    graph: Graph
    groups: tuple[Group, ...]
    aliases: Mapping[Value, Alias] = field(default_factory=dict)
    cases: Mapping[Group, tuple[SizeCase, ...]] = field(default_factory=dict)
    updates: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)

    def root(self, v: Value) -> Value:
        """Returns the value that owns the memory of *v*: *v* itself if it is no alias."""
        while v in self.aliases:
            v = self.aliases[v].source
        return v

    def offset(self, v: Value) -> int:
        """Returns the byte in its root's memory at which *v* begins."""
        elements = 0
        while v in self.aliases:
            elements += self.aliases[v].offset
            v = self.aliases[v].source
        return elements * v.dtype.bytes

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The distinct constants that groups read from memory, and those that states begin with."""
        read = [f.root(v) for f in self.all_graphs for g in f.groups for v in g.inputs]
        read += [s.initial for s in self.graph.states if s.initial is not None]
        return tuple(dict.fromkeys(v for v in read if isinstance(v, Constant)))

    @cached_property
    def all_graphs(self) -> tuple[FusedGraph, ...]:
        """This graph, and those of the regions in it, at any depth."""
        return (self, *[f for g in self.groups for r in g.regions for f in r.all_graphs])

    @cached_property
    def late_sizes(self) -> tuple[tuple[int, LateSize], ...]:
        """The late sizes in the order in which they become known, each with the step after which it is: -1 for inputs."""
        made = {root: step for step, g in enumerate(self.groups) for root in map(self.root, g.outputs)}
        known = [(made.get(self.root(late.value), -1), late) for late in self.graph.late_sizes]
        return tuple(sorted(known, key=lambda found: found[0]))

    @cached_property
    def _stages(self) -> Mapping[Var, int]:
        return {late.size: n for n, (_, late) in enumerate(self.late_sizes, 1)}

    def stage(self, *sizes: Expr) -> int:
        """Returns how many late sizes are known as soon as all of *sizes* are: 0 where none of them is late."""
        return max([self._stages.get(v, 0) for s in sizes for v in free_vars(s)], default=0) if self._stages else 0

    def zero_sizes_of(self, group: Group) -> tuple[Var, ...]:
        """Returns those sizes in the shapes of a group's inputs and outputs that may be zero: if one is, its kernel can't run.

        They are the late ones without limits, and those of dimensions that were declared to begin at zero.
        """
        shown = dict.fromkeys(v for t in (*group.inputs, *group.outputs) for s in t.shape for v in free_vars(s))
        return tuple([v for v in shown if (v in self._stages if v.limits is None else v.limits[0] == 0)])

    def is_kept(self, v: Value) -> bool:
        """Tells whether *v* is a result of control flow that tells its own late sizes: such a result is in kept memory."""
        step = self._steps.get(v)
        return step is not None and any(
            known == step for known, late in self.late_sizes if late.size in variables_of(v.shape)
        )

    @cached_property
    def _steps(self) -> Mapping[Value, int]:
        return {v: step for step, g in enumerate(self.groups) if g.regions for v in g.outputs}

    @cached_property
    def versions(self) -> Mapping[Group, tuple[Version, ...]]:
        """The kernels in the place of a group's own for cases of its sizes: the first whose condition holds is run.

        Where a size is zero that may be, a group has one that computes outputs that have elements all the same. Others are for
        the `cases` that were chosen for it.
        """
        found: dict[Group, tuple[Version, ...]] = {}
        for g in self.groups:
            zero = () if g.regions else self.zero_sizes_of(g)
            made = [self._version(g, case, zero) for case in self.cases.get(g, ())]
            made[:0] = self._versions_of_zeros(g, zero)
            if kept := tuple([v for v in made if v is not None]):
                found[g] = kept
        return found

    def _versions_of_zeros(self, group: Group, zero: Sequence[Var]) -> list[Version | None]:
        """Returns the version of *group* for all of its sizes that may be *zero*, or one for each where that can't be.

        One kernel is as good for many, as for the pieces that are concatenated, of which any may have no elements. An algorithm
        over the elements of such a concatenation asks only for the sum of their numbers.
        """
        several = [v for v in zero if not group.is_empty_where_zero(v)]
        if len(several) > 1:
            general = self._version(group, has_zeros(several), zero)
            if general is not None and general.group.is_total:
                return [general]
            of_sum = self._version(group, has_zeros_in_sum(several), zero)
            if of_sum is not None and not set(several) & set(of_sum.group.sizes):
                return [of_sum]
        return [self._version(group, is_exactly(v, 0), zero) for v in several]

    def _version(self, group: Group, case: SizeCase, zero: Sequence[Var]) -> Version | None:
        """Returns the version of *group* in a case of a size while those of its sizes that may be *zero* are not."""
        made = group.where(case)
        if made is None:
            return None
        others = [v > ZERO for v in zero if v not in case.values]
        return Version(made, all_of([case.condition, *others]), tuple([case.arguments.get(v, v) for v in made.sizes]))

    @property
    def has_control_flow(self) -> bool:
        """Tells whether there are branches or loops."""
        return any(g.regions for g in self.groups)

    @property
    def kernel_calls(self) -> tuple[Group, ...]:
        """The groups whose kernels are called, those of regions too, in their order."""
        return tuple([g for f in self.all_graphs for g in f.calls if not g.regions])

    @property
    def kernel_groups(self) -> tuple[Group, ...]:
        """The groups that kernels are made for: those that run, and their versions."""
        own = [g for f in self.all_graphs for g in f.groups if not g.regions]
        return (*own, *[v.group for f in self.all_graphs for of_one in f.versions.values() for v in of_one])

    @cached_property
    def on_demand(self) -> frozenset[Group]:
        """The groups that only serve watched guards: they run if a kernel reported an index outside its limits."""
        guarded = [v for g in self.graph.guards if not g.watched for v in (g.least, g.greatest)]
        late = [found.value for found in self.graph.late_sizes]
        needed = {self.root(v) for v in (*self.graph.outputs, *guarded, *late)}
        found = set()
        for g in reversed(self.groups):
            if needed.isdisjoint(map(self.root, g.outputs)):
                found.add(g)
            else:
                needed.update(map(self.root, g.inputs))
        return frozenset(found)

    @property
    def calls(self) -> tuple[Group, ...]:
        """The groups that run in every call, in their order."""
        return tuple([g for g in self.groups if g not in self.on_demand])

    def __str__(self) -> str:
        lines = [f"{len(self.groups)} groups, {len({g.key for g in self.groups})} distinct"]
        for g in self.groups:
            inputs = ", ".join(v.name for v in g.inputs)
            lines.append(f"  {', '.join(map(repr, g.outputs))} = {'+'.join(n.op for n in g.nodes)}({inputs})")
        lines += [f"  {v!r} is {a.source!r} from {a.offset}" for v, a in self.aliases.items()]
        return "\n".join(lines) + "\n"


def _reads_nothing(op: Operation) -> bool:
    """Tells whether elements of *op* are computed from elements of tensors that have none."""
    if not isinstance(op, Compute) or any(s is ZERO for s in op.shape):
        return False
    if op.reduction is not None and any(a.extent is ZERO for a in op.reduction.axes):
        return False
    if not any(s is ZERO for r in op.reads for s in r.tensor.shape):
        return False
    bounds = Bounds()
    for axis, extent in zip(op.axes, op.shape, strict=True):
        bounds = bounds.bind(axis, ZERO, extent - ONE)
    made = [simplify(v, bounds) for v in op.values]  # without what is read where no element is, as by padding
    return any(s is ZERO for v in made for r in reads_of(v) for s in r.tensor.shape)


def is_literal(v: Value) -> bool:
    """Tells whether *v* is a constant of one element that stays as it is, which kernels embed as a literal."""
    return isinstance(v, Constant) and v.size == 1 and v.is_fixed


def _literal_tensor(v: Value) -> Tensor:
    assert isinstance(v, Constant)  # is_literal(v), or it would be an input of the group
    value = const(v.array.item(), v.dtype)
    return compute(v.shape, lambda *i: value, "literal", dtype=v.dtype)


def _literal_text(v: Value) -> str:
    assert isinstance(v, Constant)
    return f"{v.dtype}{list(v.extents)}:{v.array.tobytes().hex()}"

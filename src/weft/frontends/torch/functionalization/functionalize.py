"""Changes in place become new values (functionalization), which is what a graph's values are.

    y.add_(1);        use(y)      becomes     y1 = add(y, 1);                                      use(y1)
    y[:, 0].copy_(x); use(y)      becomes     y1 = select_scatter(y, copy(y[:, 0], x), 1, 0);      use(y1)

A tensor that another is a view of has its part replaced; others that share its memory are taken from it anew where they are read
next. PyTorch does the same by tracing the whole program once more, which takes longer than all else of an import: that is left
for programs whose changes can't be followed by the graph alone.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from weft.frontends.torch.complex_numbers import is_known
from weft.frontends.torch.decompose import is_mutable, name_of
from weft.frontends.torch.functionalization.put_back import PIECES, PUT_BACK, all_of_it

A: Final = torch.ops.aten

_COPIES: Final = (A.lift_fresh_copy.default, A.clone.default)
"""Operators whose result has memory of its own, though PyTorch's description of it may not."""

_TRUTH: Final = (A.eq, A.ne, A.lt, A.le, A.gt, A.ge, A.logical_and, A.logical_or, A.logical_xor, A.logical_not)
"""Operators whose new tensors have truth values, where those that change their arguments keep the type of these."""

_NEW: Final = (
    *(A.linear, A.matmul, A.layer_norm, A.rms_norm, A.group_norm, A.batch_norm, A.instance_norm, A.softmax),
    *(A.log_softmax, A.conv1d, A.conv2d, A.conv3d, A.conv_transpose1d, A.conv_transpose2d, A.conv_transpose3d),
    *(A.max_pool1d, A.max_pool2d, A.max_pool3d, A.scaled_dot_product_attention, A.where, A.pad, A.one_hot, A.outer),
)
"""Composite operators that always make tensors with memory of their own."""

_ANY_TYPE: Final = frozenset({"index", "indices", "mask"})
"""Arguments whose element types the result's does not depend on."""


def without_changes(module: GraphModule) -> GraphModule | None:
    """Returns a graph like that of *module* without operators that change their arguments; itself if it has none.

    None where a change can't be followed: of an input, a parameter or a buffer, in a graph that an operator runs, by an operator
    without a counterpart that returns a new tensor, through a view that has no inverse here, or where what shares memory is not
    certain, as in programs that were read from a file.
    """
    inner = [part for part in module.modules() if isinstance(part, GraphModule) and part is not module]
    if any(map(_changes, inner)):
        return None
    if not _changes(module):
        return module
    memory = _Memory(module.graph)
    return GraphModule(module, _Following(memory).graph) if all(map(memory.is_followed, memory.changes)) else None


def _changes(module: GraphModule) -> list[Node]:
    """Returns the calls of operators that change an argument."""
    return [n for n in module.graph.nodes if is_mutable(n.target)]


class _Memory:
    """Which tensors of a graph share memory: `views` has the tensor that each is a view of, or is after it was changed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places = {n: k for k, n in enumerate(graph.nodes)}
        self.changes = [n for n in graph.nodes if is_mutable(n.target)]
        self.views: dict[Node, Node] = {}
        self.roots: dict[Node, Node] = {}
        self.sharing: dict[Node, list[Node]] = {}
        for n in graph.nodes:
            of = _viewed(n)
            if of is not None and (n.target is not operator.getitem or of in self.views):
                self.views[n] = of
            self.roots[n] = self.roots[self.views[n]] if n in self.views else n
            self.sharing.setdefault(self.roots[n], []).append(n)
        self.suspects: dict[Node, list[Node]] = {}
        self.ambiguous = self._ambiguous()
        self.last_use = {
            root: max(self.places[u] for m in members for u in (m, *m.users)) for root, members in self.sharing.items()
        }
        self.last_read = {n: max([self.places[u] for u in n.users], default=0) for n in graph.nodes}
        for n in reversed(graph.nodes):
            if n in self.views:  # which is taken from it anew
                of = self.views[n]
                self.last_read[of] = max(self.last_read[of], self.last_read[n])

    def _ambiguous(self) -> set[Node]:
        """Returns the tensors that are views of no other, and share the memory of others that are none either."""
        owners: dict[int, list[Node]] = {}
        for n in self.sharing:
            if n.target not in _COPIES and isinstance(n.meta.get("val"), torch.Tensor):
                for s in _storages(n):
                    owners.setdefault(s, []).append(n)
        return {n for several in owners.values() if len(several) > 1 for n in several}

    def is_followed(self, change: Node) -> bool:
        """Tells whether a change can be followed by the graph alone."""
        into = _changed(change)
        if into is None or change not in self.views or counterpart(change) is None:
            return False
        held, whole = into.meta["val"], self.roots[into]
        if not isinstance(whole.meta["val"], torch.Tensor) or held.is_complex() or not _keeps_type(change, held.dtype):
            return False
        if whole.op != "call_function" or whole in self.ambiguous or change.meta["val"].shape != held.shape:
            return False
        views = [n for n in self.path(into) if n in self.views and not is_mutable(n.target)]
        return all(map(self._is_put_back, views)) and not self._may_share(whole, change, set())

    def path(self, n: Node) -> Iterator[Node]:
        """Yields a tensor, what it is a view of, and so on to the one that is no view."""
        yield n
        while n in self.views:
            n = self.source(n)
            yield n

    def source(self, view: Node) -> Node:
        """Returns the tensor that a view, which may be one of several pieces, is taken from."""
        of = self.views[view]
        return self.views[of] if view.target is operator.getitem else of

    def outdated(self, change: Node) -> set[Node]:
        """Returns the tensors that share memory with the one that a call changes, and are read behind it.

        Other pieces of a tensor that was cut, than the one that is changed, are not among them.
        """
        into, place = _changed(change), self.places[change]
        assert into is not None
        pieces = {self.views[m]: m for m in self.path(into) if m.target is operator.getitem}
        shared = [n for n in self.sharing[self.roots[into]] if self.places[n] < place < self.last_read[n]]
        return {n for n in shared if not pieces or not self._is_another(n, pieces)}

    def _is_another(self, n: Node, pieces: Mapping[Node, Node]) -> bool:
        own = [m for m in self.path(n) if m.target is operator.getitem and self.views[m] in pieces]
        return any(pieces[self.views[m]].args[1] != m.args[1] for m in own)

    def _is_put_back(self, view: Node) -> bool:
        if view.target is operator.getitem:
            pieces = self.views[view]
            return pieces.target in PIECES and not pieces.kwargs and isinstance(view.meta["val"], torch.Tensor)
        how = PUT_BACK.get(view.target)
        return how is all_of_it or (how is not None and not view.kwargs)

    def _may_share(self, whole: Node, change: Node, seen: set[Node]) -> bool:
        """Tells whether a tensor that was made from *whole*, or from a view of it, before *change* and is read behind it may have
        the same memory without saying so.

        Composite operators may return an argument: a dropout that drops nothing does.
        """
        for user in self._suspects(whole):
            made = self.roots[user]
            if user in seen or self.places[user] >= self.places[change]:
                continue
            seen.add(user)
            if self.last_use[made] > self.places[change] or self._may_share(made, change, seen):
                return True
        return False

    def _suspects(self, whole: Node) -> list[Node]:
        """Returns the calls that are given a tensor or a view of it, and may return that without saying so."""
        if whole not in self.suspects:
            users = {u: None for n in self.sharing[whole] for u in n.users if self.roots[u] is not whole}
            self.suspects[whole] = [u for u in users if _may_return_an_argument(u)]
        return self.suspects[whole]


def _viewed(n: Node) -> Node | None:
    """Returns the tensor that the result of a call is a view of, or that the call changes; None if it is none of these."""
    if n.op != "call_function" or n.target in _COPIES:
        return None
    held = _storages(n)
    found = next((a for a in n.all_input_nodes if held & _storages(a)), None)
    return _changed(n) if found is not None and is_mutable(n.target) else found


def _may_return_an_argument(n: Node) -> bool:
    if not isinstance(n.target, torch._ops.OpOverload):
        return n.op == "call_function" and n.target is not operator.getitem
    if any(r.alias_info is not None for r in n.target._schema.returns):
        return False  # where it is an argument, PyTorch's description says so
    is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(n.target.name(), "CompositeImplicitAutograd")
    return is_composite and n.target not in _COPIES and n.target._overloadpacket not in _NEW


def _name(op: Any) -> str:
    """Returns the name of an operator without its namespace: `add` for `aten.add_.Tensor`."""
    return str(op._overloadpacket.__name__).removesuffix("_")


def _storages(n: Node) -> set[int]:
    """Returns which memory PyTorch's descriptions of the results of a node say that these are in."""
    made = n.meta.get("val")
    held = made if isinstance(made, list | tuple) else [made]
    return {t.untyped_storage()._cdata for t in held if isinstance(t, torch.Tensor) and t.layout is torch.strided}


def _changed(change: Node) -> Node | None:
    """Returns the argument that an operator changes; None if there are several."""
    declared = change.target._schema.arguments
    written = [(k, a.name) for k, a in enumerate(declared) if a.alias_info and a.alias_info.is_write]
    if len(written) != 1:
        return None
    ((place, name),) = written
    found = change.kwargs[name] if name in change.kwargs else change.args[place]
    return found if isinstance(found, Node) else None


def counterpart(change: Node) -> Any:
    """Returns the operator that makes the changed tensor as a new one, such as `aten.add.Tensor` for `aten.add_.Tensor`.

    None if there is none, or none that is imported.
    """
    op: Any = change.target
    declared = op._schema.arguments
    if torch.Tag.inplace_view in op.tags or len(op._schema.returns) != 1:
        return None
    has_output = any(a.is_out for a in declared)
    packet = op._overloadpacket if has_output else getattr(getattr(torch.ops, op.namespace), _name(op), None)
    wanted = [(a.name, str(a.type)) for a in declared if not a.is_out]
    for found in [getattr(packet, name) for name in packet.overloads()] if packet is not None else ():
        same = [(a.name, str(a.type)) for a in found._schema.arguments] == wanted
        if same and not found._schema.is_mutable and is_known(name_of(found)):
            return found
    return None


def _keeps_type(change: Node, dtype: torch.dtype) -> bool:
    """Tells whether the counterpart of a change makes elements of *dtype*, as the change does."""
    op: Any = change.target
    if counterpart(change)._overloadpacket in _TRUTH:
        return dtype is torch.bool
    given = dict(zip([a.name for a in op._schema.arguments], change.args, strict=False)) | change.kwargs
    metas = [a.meta.get("val") for k, a in given.items() if isinstance(a, Node) and k not in _ANY_TYPE]
    types = [m.dtype for m in metas if isinstance(m, torch.Tensor)]
    return op is A.copy_.default or all(torch.promote_types(dtype, t) is dtype for t in types)


@dataclass
class _Following:
    """The graph without changes, made node by node.

    `now` has what each tensor is at the moment, but for those that are `stale`: what they are views of has changed.
    """

    memory: _Memory
    graph: Graph = field(default_factory=Graph)
    now: dict[Node, Node] = field(default_factory=dict)
    stale: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        for n in self.memory.graph.nodes:
            if is_mutable(n.target):
                self._change(n)
            else:
                self.now[n] = self._copied(n)

    def _copied(self, n: Node) -> Node:
        return self.graph.node_copy(n, self._value)

    def _value(self, n: Node) -> Node:
        """Returns what a tensor is now."""
        if n in self.stale:
            self.stale.discard(n)
            self.now[n] = self._value(self.memory.views[n]) if is_mutable(n.target) else self._copied(n)
        return self.now[n]

    def _change(self, change: Node) -> None:
        into, target = _changed(change), counterpart(change)
        assert into is not None
        names = {a.name for a in target._schema.arguments}
        kwargs = {k: map_arg(v, self._value) for k, v in change.kwargs.items() if k in names}
        made = self.graph.create_node(
            "call_function", target, map_arg(change.args, self._value), kwargs, name=change.name
        )
        made.meta = dict(change.meta)
        self.now[change] = made
        changed = {change}
        for n in self.memory.path(into):
            changed.add(n)
            self.now[n] = made
            if n in self.memory.views and not is_mutable(n.target):
                of = self.memory.source(n)
                made = self._put_back(n, self._value(of), made)
                made.meta = {**change.meta, "val": of.meta["val"]}
        self.stale.difference_update(changed)
        self.stale |= self.memory.outdated(change) - changed

    def _put_back(self, view: Node, whole: Node, part: Node) -> Node:
        """Returns the tensor *whole* with a new value of a view of it."""
        if view.target is not operator.getitem:
            return PUT_BACK[view.target](self.graph, whole, part, map_arg(tuple(view.args[1:]), self._value))
        pieces, number = self.memory.views[view], view.args[1]
        assert isinstance(number, int)
        op, where = PIECES[pieces.target](pieces, number)
        return self.graph.call_function(op, (whole, part, *where))

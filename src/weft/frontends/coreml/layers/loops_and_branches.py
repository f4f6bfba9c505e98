"""Loops and branches: networks inside of a layer, which write to the values of those around them by name.

A loop's states are the values that there are before it, and that its body, or the network of its condition, writes.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import layer
from weft.frontends.coreml.network_call import NetworkCall
from weft.frontends.protobuf_message import Message
from weft.graph.builder import Builder, CompileTimeConstant, Operand
from weft.graph.composites import branches_and_loops
from weft.support.dtypes import bool_, i64


def _written(network: Message) -> list[str]:
    """Returns the names that the layers of a network write, those of networks inside of it too."""
    found: dict[str, None] = {}
    waiting = [network]
    while waiting:
        for m in waiting.pop().messages(1):
            found.update(dict.fromkeys(m.texts(3)))
            waiting += inner_networks(m)
    return list(found)


def inner_networks(m: Message) -> list[Message]:
    """Returns the networks inside of a layer."""
    inner = [(605, 1), (605, 2), (615, 3), (615, 4)]
    return [m.inner(kind).inner(part) for kind, part in inner if m.has(kind) and m.inner(kind).has(part)]


def _holds(b: Builder, x: Operand) -> Operand:
    """Returns whether a number is not zero."""
    return b.cast(b.reshape(x, ()), bool_)


@layer(605, "branch")
def branch(c: NetworkCall) -> tuple[Operand, ...]:
    """One of two networks, or one or none."""
    values = c.scope.values
    networks = [c.params.inner(1), c.params.inner(2)]
    written = [_written(n) for n in networks]
    names = [n for n in dict.fromkeys([*written[0], *written[1]]) if n in values or all(n in w for w in written)]

    def body(k: int, b: Builder) -> list[Operand]:
        inner = ChainMap[str, Operand]({}, values)
        c.scope.run(networks[k], inner, b.evaluator)
        return [inner[n] for n in names]

    condition = c.input()
    if isinstance(condition, CompileTimeConstant) and not condition.symbolic:
        made = body(0 if condition.array.all() else 1, c)
    else:
        made = branches_and_loops.branch(c, _holds(c, condition), lambda r: body(0, r), lambda r: body(1, r))
    values.update(zip(names, made, strict=True))
    return ()


@layer(615, "loop")
def loop(c: NetworkCall) -> tuple[Operand, ...]:
    """A network as often as a number says, or as long as a number of another network is not zero."""
    values, condition, body, name = c.scope.values, c.params.message(3), c.params.inner(4), c.params.text(2)
    asked = [condition] if condition is not None else []
    names = [n for n in dict.fromkeys([*_written(body), *(n for a in asked for n in _written(a))]) if n in values]

    def goes_on(b: Builder, inner: ChainMap[str, Operand]) -> Operand:
        """Runs the network of the condition, and returns whether the loop goes on."""
        for network in asked:
            c.scope.run(network, inner, b.evaluator)
        if name and name not in inner:
            c.fail(f"nothing makes its condition {name!r}", AGAIN)
        return _holds(b, inner[name]) if name else b.scalar(True, bool_)

    def step(r: Builder, number: Operand, now: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        inner = ChainMap[str, Operand](dict(zip(names, now, strict=True)), values)
        c.scope.run(body, inner, r.evaluator)
        more = goes_on(r, inner)
        return more, [inner[n] for n in names], []

    before = ChainMap[str, Operand]({}, values)
    first = goes_on(c, before)
    last, _ = branches_and_loops.loop(c, _most(c, name), first, [before[n] for n in names], step)
    values.update(zip(names, last, strict=True))
    return ()


def _most(c: NetworkCall, condition: str) -> Operand | None:
    """Returns how often a loop runs at most; None where its condition alone says it."""
    if c.inputs:
        return c.cast(c.reshape(c.input(), ()), i64)
    most = c.integer(1)
    return None if condition and not most else c.scalar(most, i64)

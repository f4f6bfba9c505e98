"""Long short-term memory of images: a convolution of each image of a sequence, and of the state (Shi et al., 2015)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.convolution import convolved, outputs_first, sizes_of
from weft.frontends.keras.ops.nonlinearity import FUNCTIONS, activation_of
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Builder, Operand, total
from weft.graph.composites.branches_and_loops import loop
from weft.graph.composites.sequences import element, few_steps, reverse, stack
from weft.graph.composites.windows import same_pads
from weft.support.dtypes import bool_, f32

States = tuple[Operand, Operand]


def _layer(n: int) -> Translation:
    """A layer of images of *n* dimensions: the states of all steps, or the last one, and if asked for its memory."""

    def translate(c: Call) -> Operand | tuple[Operand, ...]:
        c.refuse("stateful", False)
        if c.mask() is not None or len(c.positional) > 1 or c.named.get("initial_state") is not None:
            c.fail("sequences with masks, and first states, are not supported", "call it with a tensor alone")
        rows = _convolved_steps(c, n)
        if c.flag("go_backwards"):
            rows = reverse(c, rows, None)
        outputs, (h, memory) = _run(c, rows, _step(c, n, rows))
        if c.flag("return_sequences"):
            by_batch = c.transpose(outputs, [1, 0, *range(2, n + 3)])
            last = [0, 1, *range(3, n + 3), 2] if c.channels_last else range(n + 3)
            made = c.transpose(by_batch, [*last])
        else:
            made = c.last(h, last=c.channels_last)
        states = [c.last(s, last=c.channels_last) for s in (h, memory)]
        return (made, *states) if c.flag("return_state") else made

    return translate


def _convolved_steps(c: Call, n: int) -> Operand:
    """Returns the convolved images of all steps [time, batch, 4 * filters, *sizes]."""
    x = c.floats(rank=n + 3)
    batch, steps = x.shape[:2]
    images = c.first(c.reshape(x, [total([batch, steps]), *x.shape[2:]]), last=c.channels_last)
    cell = c.weights.part("cell")
    bias = c.array(cell, 2, 1, None, 2) if c.flag("use_bias", True) else None
    made = convolved(c, images, c.array(cell, 0, n + 2, outputs_first, 0), bias, 1)
    by_batch = c.reshape(made, [batch, steps, *made.shape[1:]])
    return c.transpose(by_batch, [1, 0, *range(2, n + 3)])


def _step(c: Call, n: int, rows: Operand) -> Callable[[Builder, Operand, States], States]:
    """Returns the function of one step: it takes the convolved image, and the states."""
    recurrence = c.array(c.weights.part("cell"), 1, n + 2, outputs_first, 1)
    kernel, ones = sizes_of(recurrence), [1] * n
    pads = same_pads(c, kernel, ones, ones, rows.shape[3:], lower=False)
    gate, bent = FUNCTIONS[activation_of(c, "recurrent_activation")], FUNCTIONS[activation_of(c)]
    filters = recurrence.shape[1]

    def step(b: Builder, now: Operand, states: States) -> States:
        h, memory = states
        of_state = b.add("conv2d", h, recurrence, None, strides=ones, pads=pads, dilations=ones, group=1)
        i, f, g, o = b.add_many("split", b.add("add", now, of_state), axis=1, sizes=(filters,) * 4)
        memory = b.add("add", b.add("mul", gate(b, f), memory), b.add("mul", gate(b, i), bent(b, g)))
        return b.add("mul", gate(b, o), bent(b, memory)), memory

    return step


def _run(c: Call, rows: Operand, step: Callable[[Builder, Operand, States], States]) -> tuple[Operand, States]:
    """Returns the states [time, batch, filters, *sizes] of all steps, and the last ones."""
    zeros = c.add("full", shape=(rows.shape[1], rows.shape[2] // 4, *rows.shape[3:]), value=0, dtype=f32)
    states: States = (zeros, zeros)
    if steps := few_steps(rows.shape[0]):
        made: list[Operand] = []
        for t in range(steps):
            states = step(c, element(c, rows, 0, t), states)
            made.append(states[0])
        return stack(c, made, 0), states

    def iteration(
        r: Builder, t: Operand, now: Sequence[Operand]
    ) -> tuple[Operand, Sequence[Operand], Sequence[Operand]]:
        new = step(r, r.add("element_at", rows, t, axis=0), (now[0], now[1]))
        return r.scalar(True, bool_), new, [new[0]]

    last, outputs = loop(c, c.size(rows.shape[0]), None, states, iteration)
    return outputs[0], (last[0], last[1])


for _n in (1, 2, 3):
    translates(f"ConvLSTM{_n}D")(_layer(_n))

"""Variables that calls change, and a filter that keeps its memory in one."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import Results, Variable
from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand, static_sizes


@translates("CALL_ONCE")
def call_once(c: LiteCall) -> Results:
    """Gives variables their first values, by a subgraph."""
    with c.variables.first_values():
        c.library.call(c.integer("init"), [])
    return ()


@translates("VAR_HANDLE")
def var_handle(c: LiteCall) -> Results:
    """A variable, by its name."""
    return Variable(c.text("shared_name", "") or c.text("container", ""), None)


@translates("READ_VARIABLE")
def read_variable(c: LiteCall) -> Operand:
    """The value of a variable."""
    return c.variables.read(c, _variable(c, 0), c.made[0])


@translates("ASSIGN_VARIABLE")
def assign_variable(c: LiteCall) -> Results:
    """Gives a variable another value."""
    c.variables.write(c, _variable(c, 0), c.tensor(1))
    return ()


@translates("RNN")
def rnn(c: LiteCall) -> Operand:
    """A step of a recurrent layer with one function, whose result is its state."""
    if any(t is not None and t.encoding is not None for t in c.given):
        c.fail("quantised layers are not supported", "convert the model with weights of float32")
    variable = _variable(c, 4)
    was = c.variables.read(c, variable, c.given[4])
    sums = c.add("add", c.add("matmul", c.tensor(0, 2), c.weight(1, [1, 0])), c.tensor(3, 1))
    made = c.activated(c.add("add", sums, c.add("matmul", was, c.weight(2, [1, 0]))), option="function")
    c.variables.write(c, variable, made)
    return made


@translates("SVDF")
def svdf(c: LiteCall) -> Operand:
    """A layer of filters of one feature of the input and its last so many steps each (Nakkiran et al., 2015).

    [batch, inputs], features [filters, inputs], times [filters, memory] -> [batch, units], the sums of *rank* filters each. The
    state [batch, filters * memory] has the features of the last steps, the newest last.
    """
    if any(t is not None and t.encoding is not None for t in c.given):
        c.fail("filters of quantised features are not supported", "convert the model with weights of float32")
    x, times, rank = c.tensor(0, 2), c.tensor(2, 2), c.integer("rank", 1)
    filters, memory = static_sizes(times.shape) or (0, 0)
    if rank < 1 or not filters or filters % rank or not memory:
        c.fail(f"its filters {times!r} are not of rank {rank}", "convert the model again")
    variable = _variable(c, 4)
    was = c.reshape(c.variables.read(c, variable, c.given[4]), [x.shape[0], filters, memory])
    older = c.add("slice", was, starts=(1,), ends=(memory,), axes=(2,), steps=(1,))
    newest = c.reshape(c.add("matmul", x, c.weight(1, [1, 0])), [x.shape[0], filters, 1])
    steps = c.add("concat", older, newest, axis=2)
    c.variables.write(c, variable, c.reshape(steps, [x.shape[0], filters * memory]))
    sums = c.add("reduce_sum", c.add("mul", steps, times), axes=(2,), keepdims=False)
    made = c.add("reduce_sum", c.reshape(sums, [x.shape[0], filters // rank, rank]), axes=(2,), keepdims=False)
    return c.add("add", made, c.tensor(3, 1)) if c.has(3) else made


def _variable(c: LiteCall, i: int) -> Variable:
    found = c.inputs[i] if i < len(c.inputs) else None
    if not isinstance(found, Variable):
        c.fail(f"its input {i} is no variable", "convert the model again")
    return found

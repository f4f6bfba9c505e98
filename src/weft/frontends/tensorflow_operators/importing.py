"""Steps of importing a node that TensorFlow's and TensorFlow Lite's importers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.frontends.fitting import fitting
from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Held
from weft.graph import Graph, Value
from weft.support.errors import ModelError, UnknownValues, WeftError


def translated(c: Call, translate: Callable[[], Sequence[Held]], count: int) -> Sequence[Held]:
    """Returns *count* or more results of a translation; raises `ModelError` naming the node, with a hint, for any failure."""
    try:
        with fitting(c.source, "attributes and inputs", SAVE_AGAIN):
            results = translate()
    except UnknownValues:
        raise
    except WeftError as error:
        if isinstance(error, ModelError) and error.hint and error.where:
            raise
        raise ModelError(error.message, where=c.source, hint=error.hint or SAVE_AGAIN) from error
    if len(results) < count:
        c.fail(f"it has {count} results, and {len(results)} are supported", "build the model without the others")
    return results


def named(graph: Graph, before: int, results: Sequence[Held], names: Sequence[str]) -> None:
    """Gives the results among the nodes of *graph* from number *before* on the *names* that the model has for them."""
    new = {v for n in graph.nodes[before:] for v in n.outputs}
    for v, name in zip(results, names, strict=False):
        if isinstance(v, Value) and v in new:
            v.name = name

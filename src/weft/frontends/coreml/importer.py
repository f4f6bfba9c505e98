"""From a model of Core ML to a graph: a program, or a neural network. Others (trees, pipelines ...) are refused by name."""

from __future__ import annotations

from typing import Final

from weft.frontends.coreml.blob_file import BlobFile
from weft.frontends.coreml.network_importer import import_network
from weft.frontends.coreml.program_importer import import_program
from weft.frontends.frontend import Shapes
from weft.frontends.protobuf_message import Message
from weft.graph import Graph
from weft.runtime.metadata import ModelMetadata
from weft.support.errors import ModelError

DESCRIPTION: Final = 2
PROGRAM: Final = 502
NETWORKS: Final = (500, 403, 303)
"""A neural network, and those that are a classifier or a regressor, whose labels are not computed."""

_METADATA, _USER_DEFINED = 100, 100
_OTHERS: Final = {
    **{200 + k: "pipeline" for k in range(3)},
    **{300 + k: f"{kind} regressor" for k, kind in ((0, "linear"), (1, "support vector"), (2, "tree"))},
    **{400 + k: f"{kind} classifier" for k, kind in ((0, "linear"), (1, "support vector"), (2, "tree"))},
}


def from_coreml(model: Message, blobs: BlobFile, shapes: Shapes | None = None) -> Graph:
    """Imports a model; *blobs* are the weights of a program.

    Sizes that the model leaves open are symbolic; *shapes* gives numbers to them, or whole shapes to inputs. Images are inputs
    [1, channels, height, width] of numbers, as the model's preprocessing, which is a part of the graph, takes them.

    Raises `ModelError` naming the operation, `UnsupportedOperators` listing all that Weft does not have, and `Malformed` for a
    damaged file.
    """
    description = model.inner(DESCRIPTION)
    graph = Graph("main")
    held = {m.text(1): m.text(2) for m in description.inner(_METADATA).messages(_USER_DEFINED)}
    graph.metadata = ModelMetadata(producer_name="coreml", custom_metadata_map=held)
    if model.has(PROGRAM):
        return import_program(model.inner(PROGRAM), graph, blobs, shapes)
    for number in NETWORKS:
        if model.has(number):
            import_network(model.inner(number), description, graph, shapes)
            return graph
    kind = next(
        (_OTHERS[n] for n in model.field_numbers if n in _OTHERS), "model without a program and a neural network"
    )
    raise ModelError(f"a {kind} of Core ML is not supported", hint="give an mlprogram or a neuralnetwork")

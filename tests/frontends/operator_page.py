"""The tables of all formats but ONNX as the page `docs/operators_of_formats.md`.

python -m tests.frontends.operator_page > docs/operators_of_formats.md
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Format:
    """A format: its title, its packages of translations, where its table is, what its entries are, and what is not read."""

    title: str
    packages: tuple[str, ...]
    table: str
    entries: str
    not_read: Mapping[str, str]

    def names(self) -> dict[str, list[str]]:
        """Returns the names of the table's entries, by the module that translates them."""
        for package in self.packages:
            found = importlib.import_module(f"weft.frontends.{package}")
            for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
                importlib.import_module(module.name)
        place, _, attribute = self.table.partition(":")
        table = getattr(importlib.import_module(f"weft.frontends.{place}"), attribute)
        made: dict[str, list[str]] = defaultdict(list)
        for name in table:
            module = table[name].__module__.rpartition(".")[2]
            made[
                module if ".ops." in table[name].__module__ or ".layers." in table[name].__module__ else "others"
            ].append(name)
        return made


FORMATS: Final = (
    Format(
        "TensorFlow",
        ("tensorflow_operators.ops",),
        "tensorflow_operators.registry:TABLE",
        "operators",
        {
            "Switch, Merge, Enter, Exit, NextIteration, LoopCond": "read where they are branches and loops, as TensorFlow's own "
            "functions write them; otherwise freeze the model with `lower_control_flow=False`, which leaves it in functions",
            "TensorArrays of TensorFlow 1 that grow, pieces of several sizes": "give arrays a size, and elements one shape",
            "DenseCountSparseOutput, and ragged tensors by `row_limits`": "count in dense tensors; give row splits",
            "NonMaxSuppressionV5 with soft suppression": "no operator of Weft's lowers scores",
            "CudnnRNN": "save the model with layers that are written out, as Keras does by default",
            "DecodeJpeg, ParseExample and other readers": "prepare inputs before the call",
            "UnicodeDecode, StringNGrams, Substr, tables that change": "prepare texts before the call",
            "RandomUniform and other random numbers": "save the model for inference",
            "inputs, and states of loops, that are complex": "give their parts",
            "NoOp, Assert": "not needed: results do not depend on them",
        },
    ),
    Format(
        "TensorFlow Lite",
        ("tensorflow_operators.ops", "tflite.ops"),
        "tflite.registry:TABLE",
        "operators",
        {
            "variables that a branch or a loop writes, quantised SVDF": "write variables behind the branch or the loop",
            "custom operators but TFLite_Detection_PostProcess, operators of TensorFlow among them": "only the converter knows "
            "what they are: convert the model without them",
            "HASHTABLE and what reads it": "tables of texts: look them up before the call",
            "RANDOM_UNIFORM, STABLEHLO_*": "not read from this format",
        },
    ),
    Format(
        "Keras",
        ("keras.ops",),
        "keras.registry:TABLE",
        "layers, and operators on tensors",
        {
            "Lambda, subclassed layers and models": "Python code, which is not run",
            "stateful ConvLSTM, cells of one's own": "not supported",
            "AutoContrast, Equalization": "prepare inputs before the call",
            "StackedRNNCells called by itself": "call its cells one after another, or put them into an RNN",
            "ThresholdedReLU, and others that Keras 3 no longer has": "load the model in Keras 3, and save it again",
        },
    ),
    Format(
        "Core ML: programs",
        ("coreml.ops",),
        "coreml.registry:TABLE",
        "operations",
        {
            "make_list, list_read, list_write and other lists": "not supported",
            "the label of `classify`, a text": "the probabilities are read: take the greatest",
            "crop_resize": "regions of images",
            "batch_to_space, space_to_batch": "not supported",
            "random_bernoulli, random_categorical, random_normal, random_uniform": "random numbers",
        },
    ),
    Format(
        "Core ML: neural networks",
        ("coreml.layers",),
        "coreml.layer_table:LAYERS",
        "layers",
        {
            "loopBreak, loopContinue": "convert the model to an mlprogram",
            "custom layers, layers that quantise their input": "the same",
            "cropResize, sequenceRepeat": "the same",
            "random numbers (`random...`, categoricalDistribution)": "draw them before the call",
        },
    ),
    Format(
        "MXNet",
        ("mxnet.ops",),
        "mxnet.registry:TABLE",
        "operators",
        {
            "_contrib_quantized_rnn, _contrib_quantized_ring_buffer": "exclude the layer from being quantised",
            "ring_buffer, `RNN` with lengths or clipped states, sparse arrays, channels last": "not supported",
        },
    ),
    Format(
        "Darknet",
        ("darknet.ops",),
        "darknet.registry:TABLE",
        "sections",
        {
            "conv_lstm, history": "states of images with gates, or of several images",
            "xnor, Gaussian_yolo, implicit_weights": "not supported",
        },
    ),
    Format(
        "Caffe",
        ("caffe.ops",),
        "caffe.registry:TABLE",
        "layers",
        {
            "PriorBox, DetectionOutput, ROIPooling, Proposal": "the last steps of detectors",
            "Interp, Python, losses and Accuracy": "not supported",
        },
    ),
    Format(
        "StableHLO (JAX)",
        ("jax.ops",),
        "jax.registry:TABLE",
        "operations",
        {
            "custom_call": "other calls of libraries than those of LAPACK for factors of real matrices",
            "complex sqrt, complex tanh and other functions": "write them with the exponential and the logarithm",
            "rng": "random numbers that are others each time; `jax.random` and `rng_bit_generator` are read",
            "collectives of several devices, infeed, outfeed": "one device computes a model",
            "tuple, get_tuple_element": "not needed: the elements of tuples are passed instead",
        },
    ),
)


def page() -> str:
    """Returns the page."""
    lines = [
        "# Operators of the other formats",
        "",
        "This page is made from the tables that import models: "
        "`python -m tests.frontends.operator_page > docs/operators_of_formats.md`. [ONNX's](operators.md) have one of "
        "their own. A model that uses others is refused with the names of all of them, and of the nodes that use them.",
    ]
    for f in FORMATS:
        names = f.names()
        lines += [
            "",
            f"## {f.title}",
            "",
            f"{sum(map(len, names.values()))} {f.entries} are read.",
            "",
            "| | |",
            "|---|---|",
        ]
        for family in sorted(names):
            lines.append(f"| {family.replace('_', ' ')} | {', '.join(sorted(names[family]))} |".replace("*", "\\*"))
        lines += ["", "| not read | why, and what to do |", "|---|---|"]
        lines += [f"| {name} | {why} |".replace("*", "\\*") for name, why in f.not_read.items()]
    return "\n".join([*lines, *importlib.import_module("tests.frontends.torch.operators_section").section()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

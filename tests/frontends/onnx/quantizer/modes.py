"""The modes of ONNX Runtime's quantiser, each a function that takes a model and returns it quantised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import onnx
from onnx import ModelProto, helper
from onnx.version_converter import convert_version
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import (
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    RTNWeightOnlyQuantConfig,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from tests.frontends.onnx.quantizer.networks import bert_layer, samples

from weft.frontends.onnx.contrib import MICROSOFT

Mode: TypeAlias = Callable[[ModelProto], ModelProto]

OPSET_OF_FOUR_BITS: Final = 21

QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator
U8, I8, U16, I16 = QuantType.QUInt8, QuantType.QInt8, QuantType.QUInt16, QuantType.QInt16


def static(form: QuantFormat, activations: QuantType, weights: QuantType, **options: Any) -> Mode:
    """Quantises activations by the ranges of samples; *options* of the quantiser begin with capitals, of the call don't.

    Weights that are signed bytes beside unsigned activations have 7 bits: see `contrib_nodes.seven_bits`. That holds for unsigned
    ones by channels, too, which the quantiser makes signed.
    """
    extra = {name: value for name, value in options.items() if name[0].isupper()}
    given = {name: value for name, value in options.items() if name not in extra}
    mixed = activations is U8 and (weights is I8 or bool(given.get("per_channel")))
    given |= {"activation_type": activations, "weight_type": weights, "reduce_range": mixed, "extra_options": extra}

    def quantized(model: ModelProto) -> ModelProto:
        return _through_files(model, lambda a, b: quantize_static(a, b, samples(model), quant_format=form, **given))

    return quantized


def dynamic(weights: QuantType, *, per_channel: bool = False, **extra: Any) -> Mode:
    """Quantises weights, and has activations quantised by the range that they have in a call."""
    given = {"weight_type": weights, "per_channel": per_channel, "reduce_range": weights is I8 or per_channel}
    return lambda model: _through_files(model, lambda a, b: quantize_dynamic(a, b, **given, extra_options=extra))


def few_bits(**options: Any) -> Mode:
    """Quantises weights of matrix products by blocks, and leaves activations as they are."""

    def quantized(model: ModelProto) -> ModelProto:
        if options.get("quant_format") is QDQ:
            model = convert_version(model, OPSET_OF_FOUR_BITS)
        quantizer = MatMulNBitsQuantizer(model, **options)
        quantizer.process()
        made: ModelProto = quantizer.model.model
        if MICROSOFT not in {opset.domain for opset in made.opset_import}:  # which some of its algorithms forget
            made.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return made

    return quantized


def _through_files(model: ModelProto, quantize: Callable[[Path, Path], None]) -> ModelProto:
    with TemporaryDirectory() as folder:
        plain, prepared, made = (Path(folder) / name for name in ("plain.onnx", "prepared.onnx", "made.onnx"))
        onnx.save(model, plain)
        quant_pre_process(plain, prepared)
        quantize(prepared, made)
        return onnx.load(made)


EVERYWHERE: Final[dict[str, Mode]] = {
    **{
        f"{form.name} {activations} {weights}{' by channel' if by_channel else ''}": static(
            form, activations, weights, per_channel=by_channel
        )
        for form in (QDQ, QOPERATOR)
        for activations, weights in ((U8, I8), (U8, U8), (I8, I8))
        for by_channel in (False, True)
    },
    "QDQ by entropy": static(QDQ, I8, I8, calibrate_method=CalibrationMethod.Entropy),
    "QDQ by percentile": static(QDQ, I8, I8, calibrate_method=CalibrationMethod.Percentile),
    "QDQ by distribution": static(QDQ, I8, I8, calibrate_method=CalibrationMethod.Distribution),
    "QDQ symmetric": static(QDQ, I8, I8, ActivationSymmetric=True, WeightSymmetric=True),
    "QDQ asymmetric weights": static(QDQ, U8, U8, WeightSymmetric=False),
    "QDQ with float biases": static(QDQ, U8, I8, QuantizeBias=False),
    "QDQ at weights": static(QDQ, U8, I8, AddQDQPairToWeight=True),
    "QDQ dedicated": static(QDQ, U8, I8, DedicatedQDQPair=True),
    "QDQ of activations that could go": static(QDQ, U8, I8, QDQKeepRemovableActivations=True),
    "QDQ 16 bits": static(QDQ, U16, I8),
    "QDQ 16 bits, ONNX Runtime's nodes": static(QDQ, U16, I8, UseQDQContribOps=True),
    "QDQ 16 bits, weights too": static(QDQ, I16, I16),
    "QDQ 4 bits": static(QDQ, U8, QuantType.QInt4),
    "QDQ 4 bits, unsigned": static(QDQ, U8, QuantType.QUInt4),
    "QDQ 4 bits, ONNX Runtime's nodes": static(QDQ, U8, QuantType.QInt4, UseQDQContribOps=True),
    "QOperator with constant factors": static(QOPERATOR, U8, I8, MatMulConstBOnly=True),
    **{
        f"dynamic {weights}{' by channel' if by_channel else ''}": dynamic(weights, per_channel=by_channel)
        for weights in (I8, U8)
        for by_channel in (False, True)
    },
    "dynamic, all products": dynamic(U8, MatMulConstBOnly=False),
    "dynamic, symmetric": dynamic(I8, WeightSymmetric=True, ActivationSymmetric=True),
}
"""Modes for any network."""

OF_PRODUCTS: Final[dict[str, Mode]] = {
    **{
        f"{bits} bits by {block}, {'symmetric' if symmetric else 'with zeros'}{', QDQ' if form is QDQ else ''}": few_bits(
            bits=bits, block_size=block, is_symmetric=symmetric, quant_format=form
        )
        for bits in (2, 4, 8)
        for block, symmetric in ((16, False), (32, False), (32, True), (64, False))
        for form in ((QOPERATOR, QDQ) if bits == 4 else (QOPERATOR,))
    },
    "4 bits by columns, QDQ": few_bits(bits=4, block_size=32, channel_wised_quantize=True, quant_format=QDQ),
    "4 bits, accuracy of float32": few_bits(bits=4, block_size=32, accuracy_level=1),
    "round to nearest": few_bits(block_size=32, algo_config=RTNWeightOnlyQuantConfig()),
    "k-quants": few_bits(block_size=32, algo_config=KQuantWeightOnlyQuantConfig()),
    "GPTQ": few_bits(block_size=32, algo_config=GPTQWeightOnlyQuantConfig(samples(bert_layer()), block_size=32)),
    "HQQ": few_bits(algo_config=HQQWeightOnlyQuantConfig(block_size=32)),
}
"""Modes for networks of matrix products: weights of few bits, activations as they are; all but AWQ, which needs a tokenizer."""

"""The digits example: the committed network is what its README says, and its training can be repeated."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from examples.digits import layers

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"


def probabilities(model: Path, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    result: npt.NDArray[np.float32] = session.run(["probability"], {"image": images})[0]
    return result


def accuracy(model: Path) -> float:
    heldout = np.load(EXAMPLE / "heldout.npz")
    return float(np.mean(probabilities(model, heldout["images"]).argmax(1) == heldout["labels"]))


def test_committed_network_reads_digits() -> None:
    assert accuracy(EXAMPLE / "digits.onnx") >= 0.975


def test_committed_network_keeps_batch_normalizations_and_any_batch() -> None:
    model = onnx.load(EXAMPLE / "digits.onnx")
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("Conv") == operators.count("BatchNormalization") == 3
    assert {"MaxPool", "AveragePool", "Flatten", "Gemm", "Softmax"} < set(operators)
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    images = np.load(EXAMPLE / "heldout.npz")["images"]
    together = probabilities(EXAMPLE / "digits.onnx", images[:7])
    alone = probabilities(EXAMPLE / "digits.onnx", images[6:7])
    np.testing.assert_allclose(together[6:], alone, atol=1e-6)


def test_committed_files_are_small() -> None:
    assert (EXAMPLE / "digits.onnx").stat().st_size < 300_000
    assert (EXAMPLE / "heldout.npz").stat().st_size < 300_000


LAYERS: dict[str, Callable[[np.random.Generator], layers.Layer]] = {
    "Conv": lambda rng: layers.Conv(3, 4, rng),
    "BatchNorm": lambda rng: layers.BatchNorm(3),
    "Relu": lambda rng: layers.Relu(),
    "MaxPool": lambda rng: layers.MaxPool(),
    "AveragePool": lambda rng: layers.AveragePool(),
    "Flatten": lambda rng: layers.Flatten(),
    "Gemm": lambda rng: layers.Gemm(5, 4, rng),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    rng = np.random.default_rng(0)
    layer = LAYERS[name](rng)
    for parameter in layer.parameters():
        parameter.value = rng.standard_normal(parameter.value.shape)
    x = rng.standard_normal((2, 5) if name == "Gemm" else (2, 3, 4, 4))
    weights = rng.standard_normal(layer.forward(x, True).shape)

    def loss() -> float:
        return float((layer.forward(x, True) * weights).sum())

    loss()
    gradient = layer.backward(weights)
    arrays = [(x, gradient)] + [(p.value, p.gradient) for p in layer.parameters()]
    for array, expected in arrays:
        np.testing.assert_allclose(differences(loss, array), expected, rtol=1e-5, atol=1e-7)


def differences(loss: Callable[[], float], array: layers.Array, step: float = 1e-5) -> layers.Array:
    """Return the gradient of `loss` with respect to `array`, which it reads, by central differences."""
    gradient = np.empty_like(array)
    for index in np.ndindex(array.shape):
        value = array[index]
        array[index] = value + step
        above = loss()
        array[index] = value - step
        gradient[index] = (above - loss()) / (2 * step)
        array[index] = value
    return gradient


@pytest.mark.slow
def test_training_again_gives_as_good_a_network(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLE / "train.py", "--output", tmp_path], check=True, capture_output=True)
    again, committed = np.load(tmp_path / "heldout.npz"), np.load(EXAMPLE / "heldout.npz")
    np.testing.assert_array_equal(again["images"], committed["images"])
    np.testing.assert_array_equal(again["labels"], committed["labels"])
    assert abs(accuracy(tmp_path / "digits.onnx") - accuracy(EXAMPLE / "digits.onnx")) <= 0.01

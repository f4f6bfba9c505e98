"""Train a small convolutional network on handwritten digits and write it as an ONNX file.

    python examples/digits/train.py [--output DIRECTORY] [--seed N]

Writes ``digits.onnx`` and ``heldout.npz``, the images the network has not seen. Needs numpy, onnx and scikit-learn
(for the data, which is part of the package: nothing is downloaded).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import layers
import numpy as np
import numpy.typing as npt
import onnx
from layers import Array
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HELD_OUT = 360
EPOCHS = 40
BATCH = 64
LEARNING_RATE = 3e-3
CLASSES = 10
Labels = npt.NDArray[np.int64]


def main() -> None:
    """Train, report the accuracy on the held-back images, write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="directory to write to")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    images, labels = load_images()
    order = np.random.default_rng(0).permutation(len(images))  # the same images are held back whatever the seed
    held, seen = order[:HELD_OUT], order[HELD_OUT:]
    network = make_network(rng)
    train(network, images[seen], labels[seen], rng)
    accuracy = float(np.mean(logits(network, images[held]).argmax(1) == labels[held]))
    print(f"accuracy on {HELD_OUT} held-back images: {accuracy:.4f}")
    options.output.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(network), options.output / "digits.onnx")
    np.savez_compressed(options.output / "heldout.npz", images=images[held], labels=labels[held])


def load_images() -> tuple[Array, Labels]:
    """Return the images [1797, 1, 8, 8] in [0, 1] and the digits they show."""
    images, labels = load_digits(return_X_y=True)
    return (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32), labels.astype(np.int64)


def make_network(rng: np.random.Generator) -> list[layers.Layer]:
    """Return the untrained network, up to the logits."""
    return [
        *(layers.Conv(1, 16, rng), layers.BatchNorm(16), layers.Relu()),
        *(layers.Conv(16, 32, rng), layers.BatchNorm(32), layers.Relu(), layers.MaxPool()),
        *(layers.Conv(32, 48, rng), layers.BatchNorm(48), layers.Relu(), layers.AveragePool()),
        *(layers.Flatten(), layers.Gemm(48 * 2 * 2, CLASSES, rng)),
    ]


def train(network: list[layers.Layer], images: Array, labels: Labels, rng: np.random.Generator) -> None:
    """Fit the network's parameters in place by Adam with a cosine-shaped learning rate."""
    optimizer = Adam([p for layer in network for p in layer.parameters()])
    steps = EPOCHS * (len(images) // BATCH)
    for epoch in range(EPOCHS):
        losses = []
        for index in batches(len(images), rng):
            loss, gradient = cross_entropy(logits(network, shifted(images[index], rng), training=True), labels[index])
            for layer in reversed(network):
                gradient = layer.backward(gradient)
            optimizer.step(LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * optimizer.steps / steps)))
            losses.append(loss)
        print(f"epoch {epoch + 1:2d} of {EPOCHS}: loss {np.mean(losses):.4f}", flush=True)


def batches(count: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the indices of an epoch's full batches, in a new random order."""
    order = rng.permutation(count)
    for start in range(0, count - BATCH + 1, BATCH):
        yield order[start : start + BATCH]


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Return the images, each moved by at most one pixel sideways."""
    moved = np.pad(images, ((0, 0), (0, 0), (0, 0), (1, 1)))
    starts = rng.integers(0, 3, len(images))
    return np.stack([image[:, :, start : start + 8] for image, start in zip(moved, starts, strict=True)])


def logits(network: list[layers.Layer], x: Array, training: bool = False) -> Array:
    """Run the network on images [batch, 1, 8, 8]; return [batch, CLASSES]."""
    for layer in network:
        x = layer.forward(x, training)
    return x


def cross_entropy(y: Array, labels: Labels) -> tuple[float, Array]:
    """Return the mean cross-entropy of softmax(y) and its gradient with respect to y."""
    probabilities = np.exp(y - y.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())
    probabilities[rows, labels] -= 1
    return loss, probabilities / len(labels)


class Adam:
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2014), algorithm 1."""

    def __init__(self, parameters: list[layers.Parameter], decay: tuple[float, float] = (0.9, 0.999)) -> None:
        self.parameters, self.decay, self.steps = parameters, decay, 0
        self.moments = [(np.zeros_like(p.value), np.zeros_like(p.value)) for p in parameters]

    def step(self, rate: float) -> None:
        """Move every parameter against its gradient."""
        self.steps += 1
        first, second = self.decay
        for parameter, (mean, square) in zip(self.parameters, self.moments, strict=True):
            mean += (1 - first) * (parameter.gradient - mean)
            square += (1 - second) * (parameter.gradient**2 - square)
            deviation = np.sqrt(square / (1 - second**self.steps)) + 1e-8
            parameter.value -= np.float32(rate / (1 - first**self.steps)) * mean / deviation


def to_onnx(network: list[layers.Layer]) -> onnx.ModelProto:
    """Return the trained network, softmax last: `image` [batch, 1, 8, 8] -> `probability` [batch, CLASSES]."""
    nodes, weights, value = [], [], "image"
    for number, layer in enumerate(network):
        names = [f"{layer.operator}_{number}_weight_{i}" for i in range(len(layer.weights()))]
        weights += [numpy_helper.from_array(w, name) for w, name in zip(layer.weights(), names, strict=True)]
        output = f"{layer.operator}_{number}"
        node = helper.make_node(layer.operator, [value, *names], [output], output)
        node.attribute.extend(helper.make_attribute(key, fact) for key, fact in layer.attributes().items())
        nodes.append(node)
        value = output
    nodes.append(helper.make_node("Softmax", [value], ["probability"], "Softmax", axis=-1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])
    probability = helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", CLASSES])
    graph = helper.make_graph(nodes, "digits", [image], [probability], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="weft")
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    main()

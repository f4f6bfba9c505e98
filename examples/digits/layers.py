"""The layers of a small convolutional network in NumPy: forward, backward, and the ONNX operator each one is.

Tensors are in the order batch, channel, row, column; training is in float32. ``forward`` keeps what ``backward``
needs, so the two are called in turn; ``backward`` takes the loss's gradient with respect to the output, leaves the
gradients of the layer's parameters in ``Parameter.gradient`` and returns the gradient with respect to the input.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
WINDOW_AXES = (-2, -1)


@dataclass
class Parameter:
    """An array that training changes, and the loss's gradient with respect to it."""

    value: Array
    gradient: Array = field(init=False)


class Layer:
    """A differentiable function that is one ONNX node."""

    operator: ClassVar[str]

    def forward(self, x: Array, training: bool) -> Array:
        raise NotImplementedError

    def backward(self, dy: Array) -> Array:
        raise NotImplementedError

    def parameters(self) -> list[Parameter]:
        return []

    def weights(self) -> list[Array]:
        """The node's constant inputs, in ONNX's order."""
        return [parameter.value for parameter in self.parameters()]

    def attributes(self) -> dict[str, int | float | list[int]]:
        """The node's attributes."""
        return {}


class Conv(Layer):
    """A 3x3 convolution of stride 1 that keeps the image's size; no bias, for a BatchNorm follows."""

    operator = "Conv"

    def __init__(self, inner: int, outer: int, rng: np.random.Generator) -> None:
        fan_in = inner * 9
        weight = rng.standard_normal((outer, inner, 3, 3)) * np.sqrt(2.0 / fan_in)
        self.weight = Parameter(weight.astype(np.float32))

    def forward(self, x: Array, training: bool) -> Array:
        batch, inner, rows, columns = self.shape = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=WINDOW_AXES)
        self.patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, inner * 9)
        y = self.patches @ self.weight.value.reshape(-1, inner * 9).T
        return y.reshape(batch, rows, columns, -1).transpose(0, 3, 1, 2)

    def backward(self, dy: Array) -> Array:
        batch, inner, rows, columns = self.shape
        flat = dy.transpose(0, 2, 3, 1).reshape(-1, dy.shape[1])
        self.weight.gradient = (flat.T @ self.patches).reshape(self.weight.value.shape)
        patches = (flat @ self.weight.value.reshape(-1, inner * 9)).reshape(batch, rows, columns, inner, 3, 3)
        padded = np.zeros((batch, inner, rows + 2, columns + 2), dy.dtype)
        for i in range(3):
            for j in range(3):
                padded[:, :, i : i + rows, j : j + columns] += patches[..., i, j].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]

    def parameters(self) -> list[Parameter]:
        return [self.weight]

    def attributes(self) -> dict[str, int | float | list[int]]:
        return {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1], "dilations": [1, 1], "group": 1}


class BatchNorm(Layer):
    """Normalisation of each channel by the batch's statistics, or by their running averages once trained."""

    operator = "BatchNormalization"
    epsilon = 1e-5
    momentum = 0.9

    def __init__(self, channels: int) -> None:
        self.scale = Parameter(np.ones(channels, np.float32))
        self.bias = Parameter(np.zeros(channels, np.float32))
        self.mean, self.variance = np.zeros(channels, np.float32), np.ones(channels, np.float32)

    def forward(self, x: Array, training: bool) -> Array:
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.variance = self.momentum * self.variance + (1 - self.momentum) * variance
        else:
            mean, variance = self.mean, self.variance
        self.inverse = 1 / np.sqrt(variance + self.epsilon)
        self.normal = (x - _channel(mean)) * _channel(self.inverse)
        return self.normal * _channel(self.scale.value) + _channel(self.bias.value)

    def backward(self, dy: Array) -> Array:
        axes, count = (0, 2, 3), dy.size // dy.shape[1]
        self.bias.gradient, self.scale.gradient = dy.sum(axes), (dy * self.normal).sum(axes)
        mean = _channel(self.bias.gradient / count) + self.normal * _channel(self.scale.gradient / count)
        return (dy - mean) * _channel(self.scale.value * self.inverse)

    def parameters(self) -> list[Parameter]:
        return [self.scale, self.bias]

    def weights(self) -> list[Array]:
        return [self.scale.value, self.bias.value, self.mean, self.variance]

    def attributes(self) -> dict[str, int | float | list[int]]:
        return {"epsilon": self.epsilon, "momentum": self.momentum}


class Relu(Layer):
    """max(x, 0)."""

    operator = "Relu"

    def forward(self, x: Array, training: bool) -> Array:
        self.positive = x > 0
        return np.maximum(x, 0)

    def backward(self, dy: Array) -> Array:
        return dy * self.positive


class _Pool(Layer):
    """A 2x2 pooling of stride 2, on views [batch, channel, row, 2, column, 2]."""

    def attributes(self) -> dict[str, int | float | list[int]]:
        return {"kernel_shape": [2, 2], "strides": [2, 2]}


class MaxPool(_Pool):
    """The largest of each 2x2 square."""

    operator = "MaxPool"

    def forward(self, x: Array, training: bool) -> Array:
        squares = _squares(x)
        y: Array = squares.max((3, 5))
        self.largest = squares == y[:, :, :, None, :, None]
        return y

    def backward(self, dy: Array) -> Array:
        shared: Array = self.largest / self.largest.sum((3, 5), keepdims=True, dtype=np.float32)
        return _joined(shared * dy[:, :, :, None, :, None])


class AveragePool(_Pool):
    """The mean of each 2x2 square."""

    operator = "AveragePool"

    def forward(self, x: Array, training: bool) -> Array:
        y: Array = _squares(x).mean((3, 5))
        return y

    def backward(self, dy: Array) -> Array:
        return (dy * np.float32(0.25)).repeat(2, axis=2).repeat(2, axis=3)


class Flatten(Layer):
    """One row a sample."""

    operator = "Flatten"

    def forward(self, x: Array, training: bool) -> Array:
        self.shape = x.shape
        return x.reshape(x.shape[0], -1)

    def backward(self, dy: Array) -> Array:
        return dy.reshape(self.shape)

    def attributes(self) -> dict[str, int | float | list[int]]:
        return {"axis": 1}


class Gemm(Layer):
    """A linear layer: x W^T + b."""

    operator = "Gemm"

    def __init__(self, inner: int, outer: int, rng: np.random.Generator) -> None:
        self.weight = Parameter((rng.standard_normal((outer, inner)) * inner**-0.5).astype(np.float32))
        self.bias = Parameter(np.zeros(outer, np.float32))

    def forward(self, x: Array, training: bool) -> Array:
        self.x = x
        return x @ self.weight.value.T + self.bias.value

    def backward(self, dy: Array) -> Array:
        self.weight.gradient, self.bias.gradient = dy.T @ self.x, dy.sum(0)
        return dy @ self.weight.value

    def parameters(self) -> list[Parameter]:
        return [self.weight, self.bias]

    def attributes(self) -> dict[str, int | float | list[int]]:
        return {"transB": 1}


def _channel(values: Array) -> Array:
    return values[:, None, None]


def _squares(x: Array) -> Array:
    batch, channels, rows, columns = x.shape
    return x.reshape(batch, channels, rows // 2, 2, columns // 2, 2)


def _joined(squares: Array) -> Array:
    batch, channels, rows, _, columns, _ = squares.shape
    return squares.reshape(batch, channels, rows * 2, columns * 2)

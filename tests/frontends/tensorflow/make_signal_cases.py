"""Makes small models of TensorFlow's operators on complex numbers, as `make_cases` does.

    python -m tests.frontends.tensorflow.make_signal_cases

Needs TensorFlow 2.21. Writes `cases/signals.npz.xz`; results that are complex are [..., 2].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.frontends.tensorflow.make_cases import CASES, R, case, f, pack

CASES.clear()
FOLDER = Path(__file__).parent / "cases"


def pairs(x: Any) -> Any:
    return tf.stack([tf.math.real(x), tf.math.imag(x)], -1)


def of_complex(compute: Any) -> Any:
    """A case of complex numbers with given parts."""
    return lambda *parts: pairs(compute(*[tf.complex(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]))


for _name, _shape in (("FFT", (2, 12)), ("FFT2D", (2, 4, 6)), ("FFT3D", (2, 3, 4))):
    for _op in (_name, f"I{_name}"):
        case(_op, of_complex(lambda z, o=_op: getattr(R, o)(input=z)), f(*_shape), f(*_shape))
for _name, _lengths in (("RFFT", [6]), ("RFFT2D", [4, 6]), ("RFFT3D", [2, 3, 8])):
    case(_name, lambda x, o=_name, n=_lengths: pairs(getattr(R, o)(input=x, fft_length=n)), f(2, 4, 8))
    case(
        f"I{_name}",
        lambda a, b, o=f"I{_name}", n=_lengths: getattr(R, o)(input=tf.complex(a, b), fft_length=n),
        f(2, 5, 5),
        f(2, 5, 5),
    )
case("Angle", lambda a, b: R.Angle(input=tf.complex(a, b)), f(3, 4), f(3, 4))
case("ComplexAbs", lambda a, b: R.ComplexAbs(x=tf.complex(a, b)), f(3, 4), f(3, 4))
case("Conj", of_complex(lambda z: R.Conj(input=z)), f(3, 4), f(3, 4))
case("Complex.broadcast", lambda a, b: pairs(R.Complex(real=a, imag=b)), f(3, 1), f(4))
case("Complex.result", lambda a, b: R.Complex(real=a, imag=b) * (2 - 1j), f(3), f(3))
PRODUCTS: dict[str, Any] = {
    "Mul": lambda a, b: a * b,
    "RealDiv": lambda a, b: a / b,
    "Sub": lambda a, b: a - b,
    "MatMul": lambda a, b: tf.matmul(a, b, transpose_b=True),
    "BatchMatMulV2": lambda a, b: tf.matmul(a[None], b[None], adjoint_b=True),
    "Einsum": lambda a, b: tf.einsum("ij,kj->ki", a, b),
    "ConcatV2": lambda a, b: tf.concat([a, b], 1),
}
for _name, _of in PRODUCTS.items():
    case(f"complex.{_name}", of_complex(_of), *[f(3, 4) for _ in range(4)])
ALONE: dict[str, Any] = {
    "Exp": tf.exp,
    "Reciprocal": lambda z: R.Reciprocal(x=z),
    "Square": tf.square,
    "moved": lambda z: (
        tf.roll(tf.pad(tf.transpose(z)[1:, ::-1], [[1, 0], [0, 2]]), 1, 0) + tf.constant(1 + 2j, tf.complex64)
    ),
    "ConjugateTranspose": lambda z: tf.transpose(z, conjugate=True),
    "Sum": lambda z: tf.reduce_sum(z, 0) - tf.reduce_mean(z, 0),
    "Cast": lambda z: tf.cast(tf.math.real(z) + 2, tf.complex64),
}
for _name, _of in ALONE.items():
    case(f"complex.{_name}", of_complex(_of), f(3, 4), f(3, 4))
case("complex.Equal", lambda a, b: tf.complex(a, b) == tf.complex(tf.abs(a), b), f(3, 4), f(3, 4))
case("PadV2.computed", lambda x, v: tf.pad(x, [[1, 0], [2, 1]], constant_values=v), f(2, 3), np.float32(1.5))
case("stft", lambda x: tf.abs(tf.signal.stft(x, 16, 6, fft_length=16, pad_end=True)), f(2, 50))


def main() -> None:
    graphs: dict[str, Any] = {}
    for name, (of, inputs) in CASES.items():
        made = tf.function(of).get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in inputs])
        outputs = [v.numpy() for v in tf.nest.flatten(made(*map(tf.constant, inputs)))]
        outputs = [np.stack([v.real, v.imag], -1) if v.dtype.kind == "c" else v for v in outputs]
        graphs[f"{name}.graph"] = np.frombuffer(made.graph.as_graph_def().SerializeToString(), np.uint8)
        graphs |= {f"{name}.input{k}": v for k, v in enumerate(inputs)}
        graphs |= {f"{name}.output{k}": v for k, v in enumerate(outputs)}
    pack(FOLDER / "signals.npz.xz", graphs)


if __name__ == "__main__":
    main()

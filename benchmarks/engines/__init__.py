"""The engines that can be measured, by name."""

from engines.base import Engine
from engines.compilers import Iree, IreeChannelsLast, Jax, Tinygrad, TinygradBeam, Tvm
from engines.pytorch import Inductor, InductorMaxAutotune, Torch, TorchChannelsLast
from engines.runtimes import OnnxRuntime, OpenVino, Weft, WeftTuned

CLASSES: tuple[type[Engine], ...] = (
    *(Weft, WeftTuned, OnnxRuntime, OpenVino),
    *(Torch, TorchChannelsLast, Inductor, InductorMaxAutotune),
    *(Tvm, Iree, IreeChannelsLast, Tinygrad, TinygradBeam, Jax),
)
ENGINES = {engine.name: engine for engine in CLASSES}

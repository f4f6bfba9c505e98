"""The benchmark's networks as plain PyTorch modules, and their seeded weights."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)
from torch import Tensor, nn

HEADS, DEPTH = 12, 64


def initialize(module: nn.Module) -> nn.Module:
    """Give every layer weights that keep activations of order one, and return the module ready for inference."""
    for layer in module.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            initialize_convolution(layer)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.0)
            nn.init.normal_(layer.bias, 0, 0.1)
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.8, 1.2)
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0, math.sqrt(1.0 / layer.in_features))
            if layer.bias is not None:
                nn.init.normal_(layer.bias, 0, 0.02)
        elif isinstance(layer, nn.Embedding):
            nn.init.normal_(layer.weight, 0, 0.5)
        elif isinstance(layer, nn.LayerNorm):  # random: the exporter would share equal weights through Identity
            nn.init.uniform_(layer.weight, 0.8, 1.2)
            nn.init.normal_(layer.bias, 0, 0.05)
    return module.eval()


def initialize_convolution(layer: nn.Conv2d | nn.ConvTranspose2d) -> None:
    kernel = layer.weight.shape[2] * layer.weight.shape[3]
    if isinstance(layer, nn.ConvTranspose2d):
        fan_in = layer.weight.shape[0] * kernel // (layer.stride[0] * layer.stride[1])
    else:
        fan_in = layer.weight.shape[1] * kernel
    nn.init.normal_(layer.weight, 0, math.sqrt(2.0 / max(1, fan_in)))
    if layer.bias is not None:
        nn.init.normal_(layer.bias, 0, 0.05)


def conv_bn(inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1, relu: bool = True) -> nn.Sequential:
    convolution = nn.Conv2d(inner, outer, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outer), *([nn.ReLU()] if relu else []))


class BasicBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = conv_bn(inner, outer, 3, stride), conv_bn(outer, outer, 3, relu=False)
        self.d = conv_bn(inner, outer, 1, stride, relu=False) if stride != 1 or inner != outer else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.b(self.a(x))
        return F.relu(y + (x if self.d is None else self.d(x)))


class ResNet(nn.Module):
    def __init__(self, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.stem, self.pool = conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)
        layers, inner = [], 64
        for stage, count in enumerate(blocks):
            for block in range(count):
                layers.append(BasicBlock(inner, 64 << stage, 2 if (stage and block == 0) else 1))
                inner = 64 << stage
        self.body, self.fc = nn.Sequential(*layers), nn.Linear(inner, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(self.pool(self.stem(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers, inner = [conv_bn(3, 32, 3, 2)], 32
        widths = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
        for outer, stride in widths:
            layers += [conv_bn(inner, inner, 3, stride, groups=inner), conv_bn(inner, outer, 1)]
            inner = outer
        self.f, self.c = nn.Sequential(*layers), nn.Linear(1024, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(torch.flatten(F.adaptive_avg_pool2d(self.f(x), 1), 1))


def dqn() -> nn.Module:
    convolutions = [(4, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)]
    layers = [layer for sizes in convolutions for layer in (nn.Conv2d(*sizes), nn.ReLU())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 18))


def dcgan() -> nn.Module:
    layers, inner = [], 100
    for outer, stride, padding in [(512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1)]:
        layers += [nn.ConvTranspose2d(inner, outer, 4, stride, padding, bias=False), nn.BatchNorm2d(outer), nn.ReLU()]
        inner = outer
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))


class LstmStep(nn.Module):
    """One step of a two-layer LSTM language model; the state is explicit, the operators plain."""

    def __init__(self, vocabulary: int = 10000, hidden: int = 650) -> None:
        super().__init__()
        self.hidden = hidden
        self.e, self.o = nn.Embedding(vocabulary, hidden), nn.Linear(hidden, vocabulary)
        self.ix = nn.ModuleList([nn.Linear(hidden, 4 * hidden) for _ in range(2)])
        self.hx = nn.ModuleList([nn.Linear(hidden, 4 * hidden) for _ in range(2)])

    def forward(self, token: Tensor, h0: Tensor, c0: Tensor, h1: Tensor, c1: Tensor) -> tuple[Tensor, ...]:
        x, states = self.e(token), []
        for ix, hx, h, c in zip(self.ix, self.hx, (h0, h1), (c0, c1), strict=True):
            i, f, g, o = torch.split(ix(x) + hx(h), self.hidden, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            x = torch.sigmoid(o) * torch.tanh(c)
            states += [x, c]
        return (self.o(x), *states)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of [batch, heads, tokens, depth]: one call in PyTorch, written out in ONNX."""
    if not torch.onnx.is_in_onnx_export():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = torch.matmul(q, k.transpose(-1, -2)) * (1.0 / math.sqrt(q.shape[-1]))
    return torch.matmul(torch.softmax(scores if mask is None else scores + mask, -1), v)


class EncoderLayer(nn.Module):
    """A post-norm transformer layer with an exact GELU."""

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.p = (nn.Linear(width, width) for _ in range(4))
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.n1, self.n2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.tokens, self.width, self.act = tokens, width, nn.GELU("none")

    def attention(self, x: Tensor, mask: Tensor) -> Tensor:
        rows = len(x)
        q, k, v = (p(x).reshape(rows, self.tokens, HEADS, DEPTH).transpose(1, 2) for p in (self.q, self.k, self.v))
        return self.p(attend(q, k, v, mask).transpose(1, 2).reshape(rows, self.tokens, self.width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.n1(x + self.attention(x, mask))
        return self.n2(x + self.f2(self.act(self.f1(x))))


class Bert(nn.Module):
    def __init__(self, layers: int = 12, width: int = 768, tokens: int = 128) -> None:
        super().__init__()
        self.tokens = tokens
        self.w, self.t, self.n = nn.Embedding(30522, width), nn.Embedding(2, width), nn.LayerNorm(width, 1e-12)
        self.pos = nn.Parameter(torch.randn(1, tokens, width) * 0.1)
        self.ls = nn.ModuleList([EncoderLayer(width, tokens) for _ in range(layers)])
        self.pool = nn.Linear(width, width)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.n(self.w(input_ids) + self.t(token_type_ids) + self.pos)
        mask = ((1.0 - attention_mask.to(torch.float32)) * -10000.0).reshape(len(x), 1, 1, self.tokens)
        for layer in self.ls:
            x = layer(x, mask)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt2Decode(nn.Module):
    """One decoding step: ids [batch, 1], position [1], past keys and values -> logits, each layer's new key and value.

    The caller owns the cache, 24 tensors [batch, 12, past, 64]. The last weight is the embedding's.
    """

    def __init__(self, layers: int = 12, width: int = 768, vocabulary: int = 50257) -> None:
        super().__init__()
        self.layers, self.width = layers, width
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)])
        self.p = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.f1 = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(layers)])
        self.f2 = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(layers)])
        self.n1 = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])
        self.n2 = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])
        self.nf, self.act = nn.LayerNorm(width), nn.GELU("tanh")
        self.register_buffer("zb", torch.zeros(vocabulary), persistent=False)

    def forward(self, ids: Tensor, position: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        x = self.wte(ids) + self.wpe(position.reshape(1, 1))
        rows, new = len(x), []
        for n in range(self.layers):
            parts = torch.split(self.qkv[n](self.n1[n](x)), self.width, 2)
            q, k, v = (part.reshape(rows, 1, HEADS, DEPTH).transpose(1, 2) for part in parts)
            new += [k, v]
            k, v = torch.cat([past[2 * n], k], 2), torch.cat([past[2 * n + 1], v], 2)
            x = x + self.p[n](attend(q, k, v).transpose(1, 2).reshape(rows, 1, self.width))
            x = x + self.f2[n](self.act(self.f1[n](self.n2[n](x))))
        x = self.nf(x)[:, 0].reshape(rows, self.width)
        return (F.linear(x, self.wte.weight, self.zb), *new)  # a zero bias, so that it is exported as one Gemm


class Gemm(nn.Module):
    """A square matrix product by a constant."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.randn(size, size) / math.sqrt(size))

    def forward(self, a: Tensor) -> Tensor:
        return torch.matmul(a, self.b)


class GemmDynamic(nn.Module):
    """A matrix product of two inputs."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.matmul(a, b)

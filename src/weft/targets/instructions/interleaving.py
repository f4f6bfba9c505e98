"""Vector code that every target has, for steps that loops alone would take element by element: interleaving rows.

`interleave_*_16x4` turns 4 rows of 16 into 16 groups of 4, the order in which dot products take a matrix: `P[i, k] = B[k, i]`.
"""

from __future__ import annotations

from typing import Final

from weft.targets.instructions.tensor_intrinsic import TensorIntrinsic

_PARAMETERS = (
    'P: buffer("global", {t}[{n}, {g}], strides=({g}, 1)), B: buffer("global", {t}[{g}, {n}], strides=(s, 1)), s: i64'
)
_SEMANTICS = f"""
def semantics({_PARAMETERS}):
    for i in range(0, {{n}}):
        for k in range(0, {{g}}):
            with block("interleave", vi=spatial({{n}}, i), vk=spatial({{g}}, k)):
                P[vi, vk] = B[vk, vi]

def implementation({_PARAMETERS}):
    whole = view(P, 0, {{t}}[{{lanes}}])
    whole[ramp(0, 1, {{lanes}})] = reinterpret({{t}}x{{lanes}}, {{words}})
"""


def _interleave(dtype: str, bits: int, lanes: int) -> TensorIntrinsic:
    """Makes words of 32 bits, each of the elements of one column."""
    group = 32 // bits
    words = ""
    for k in range(group):
        word = f"cast(u32x{lanes}, reinterpret(u{bits}x{lanes}, B[{k}, ramp(0, 1, {lanes})]))"
        words = f"{words} | {word} << broadcast(u32({bits * k}), {lanes})" if k else word
    text = _SEMANTICS.format(t=dtype, n=lanes, g=group, lanes=lanes * group, words=words)
    return TensorIntrinsic(f"interleave_{dtype}_{lanes}x{group}", text)


PORTABLE: Final = tuple(
    [_interleave(t, bits, lanes) for t, bits in (("i8", 8), ("u8", 8), ("bf16", 16)) for lanes in (4, 8, 16)]
)

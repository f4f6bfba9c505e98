"""Kernels of one block of threads, written as their statements."""

from __future__ import annotations

from weft.loop import Program, parse_program

HEAD = """
@function(kernel=1)
def f({params}):
    for b in bound(0, 1, thread="blockIdx.x"):
        for t in bound(0, {threads}, thread="threadIdx.x"):
"""


def one_block(params: str, lines: tuple[str, ...], threads: int) -> Program:
    """Returns a kernel whose thread `t` runs *lines*."""
    body = "".join([f"            {line}\n" for line in lines])
    return parse_program(HEAD.format(params=params, threads=threads) + body)

"""Decompositions of gradients that PyTorch computes whole, written in PyTorch: one file for each kind of operator."""

from weft.frontends.torch.gradients.every_gradient import gradients

__all__ = ["gradients"]

"""Decompositions of gradients that PyTorch computes whole, written in PyTorch: one file for each kind of operator."""

from weft.frontends.torch.gradients.all_gradients import gradients

__all__ = ["gradients"]

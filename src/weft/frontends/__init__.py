"""Readers of model formats, one folder per source: each turns a model into a graph."""

from __future__ import annotations

from weft.frontends.dispatch import export, files_of, to_graph

__all__ = ["export", "files_of", "to_graph"]

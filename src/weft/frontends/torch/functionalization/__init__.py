"""Changes in place become new values (functionalization)."""

from weft.frontends.torch.functionalization.functionalize import without_changes

__all__ = ["without_changes"]

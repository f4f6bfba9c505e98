"""Features of plans, computed from their loops without scheduling."""

from weft.tune.features.nest_batch import KINDS, NestAccess, NestBatch

__all__ = ["KINDS", "NestAccess", "NestBatch"]

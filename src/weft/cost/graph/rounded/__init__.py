"""Costs of computing with factors of fewer bits than the model's."""

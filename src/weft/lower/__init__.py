"""Lowering passes: scheduled loops to flat loops."""

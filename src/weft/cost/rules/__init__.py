"""Costs and candidates of the schedule rules."""

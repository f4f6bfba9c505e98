"""Decisions, candidates and plans, and the planners that choose or follow them."""

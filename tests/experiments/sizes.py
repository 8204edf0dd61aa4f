"""Runs small enough for a test."""

TINY = {"rounds": 40, "schedule": "10", "dim": 4, "width": 4, "steps": 3, "batch_size": 4}
OPTIONS = {"rounds": 40, "schedule": "10"}
GRID = {"dim": [4], "width": [4], "steps": [3], "batch_size": [4]}

"""Sweeps: spec → batches → engine → store → selection → report. Needs the extra `experiments`."""

"""Estimators: what is believed about the rewards, one per file."""

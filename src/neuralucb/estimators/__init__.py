"""Estimators: what is believed of the rewards. One file each."""

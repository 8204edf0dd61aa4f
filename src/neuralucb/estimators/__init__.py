"""Estimators: what is believed of the rewards. One file each."""

from neuralucb.estimators.linear import ridge
from neuralucb.estimators.neural import neural

__all__ = ["neural", "ridge"]

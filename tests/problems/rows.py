"""Forty rows and two classes, for the tests of labelled data."""

import numpy as np

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)

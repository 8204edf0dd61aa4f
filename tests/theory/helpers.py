"""Contexts, kernels and plans that several tests of the theory use."""

import numpy as np
from hypothesis import settings, strategies as st

from neuralucb.experiments import plan

quick = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
lambdas = st.floats(1e-3, 1e3)


def sphere(count, dim, seed=0):
    """Random contexts of norm 1."""
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def gram(seed, contexts, features):
    """A kernel of ψ(x) with so many features, ‖ψ(x)‖ ≤ 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(contexts, features))
    rows *= rng.uniform(size=(contexts, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def planned(problem, *, rounds=20, **settings):
    """One run of NeuralUCB."""
    return plan(problem, ["neural-ucb"], settings, rounds=rounds, seeds=1)

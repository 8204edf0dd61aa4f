"""Perturbed history (Kveton et al. 2020): a model of rewards with given noise, pulled to a given start."""

import numpy as np
from scipy.optimize import minimize


def fit(link, X, noisy, start, *, regularization):
    """argmin of minus the log-likelihood plus λ‖θ - start‖²/2."""

    def loss(theta):
        z = X @ theta
        fits = (z - noisy) ** 2 / 2 if link == "linear" else np.logaddexp(0, z) - noisy * z
        return fits.sum() + regularization * np.sum((theta - start) ** 2) / 2

    def slope(theta):
        z = X @ theta
        mean = z if link == "linear" else 1 / (1 + np.exp(-z))
        return X.T @ (mean - noisy) + regularization * (theta - start)

    return minimize(loss, start, jac=slope, method="BFGS", options={"gtol": 1e-10, "maxiter": 1000}).x

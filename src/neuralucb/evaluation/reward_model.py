"""A reward model fitted on the log itself: ridge regression, cross-fitted, so that no decision judges itself.

The intercept is free of the ridge, so that adding a number to all rewards adds it to what is expected. An arm that
was never seen is expected to earn what the others do.
"""

from typing import NamedTuple

import numpy as np

from neuralucb.logs.batches import Batch

__all__ = ["Grams", "Model", "gather", "model_of", "model_variance", "predict"]

FOLDS = 5


RIDGE = 1.0


class Grams(NamedTuple):
    """Σφφᵀ and Σφr of each fold and each group; φ = (1, shared, own).

    A group is an arm where arms have no features of their own, and otherwise there is one group for all.
    """

    products: np.ndarray
    """[folds, groups, p, p]"""
    sums: np.ndarray
    """[folds, groups, p]"""

    @classmethod
    def nothing(cls, batch: Batch) -> "Grams":
        """Before the first batch."""
        _, arms, own = batch.own.shape
        groups, p = (1 if own else arms), 1 + batch.shared.shape[1] + own
        return cls(np.zeros((FOLDS, groups, p, p)), np.zeros((FOLDS, groups, p)))


class Model(NamedTuple):
    """The coefficients of each fold, fitted on the other folds, and the inverse of the whole Σφφᵀ + ridge."""

    coefficients: np.ndarray
    """[folds, groups, p]"""
    inverse: np.ndarray
    """[groups, p, p]"""


def gather(grams: Grams, batch: Batch, use: np.ndarray, first: int) -> Grams:
    """The sums with a batch in them. Decision i is in fold i mod 5, counted from `first`; only rows of `use` count."""
    phi, group, fold = _features(batch), _groups(batch), folds(len(use), first)
    for f in range(FOLDS):
        for g in range(grams.sums.shape[1]):
            rows = use & (fold == f) & (group == g)
            if rows.any():
                root = np.sqrt(batch.weight[rows])
                # a matrix times itself does not wait for threads, as other products do, long on a busy machine
                inside = phi[rows] * root[:, None]
                grams.products[f, g] += inside.T @ inside
                grams.sums[f, g] += inside.T @ (root * batch.reward[rows])
    return grams


def model_of(grams: Grams) -> Model:
    """Ridge regression on the other folds, for each fold."""
    whole, sums = grams.products.sum(axis=0), grams.sums.sum(axis=0)
    others, rewards = whole - grams.products, sums - grams.sums
    mean = rewards[..., 0].sum(axis=1) / np.maximum(others[..., 0, 0].sum(axis=1), np.finfo(np.float64).tiny)
    centred = rewards - mean[:, None, None] * others[..., 0]
    coefficients = np.linalg.solve(_with_ridge(others), centred[..., None])[..., 0]
    coefficients[..., 0] += mean[:, None]
    return Model(coefficients, np.linalg.inv(_with_ridge(whole)))


def predict(model: Model, batch: Batch, first: int) -> np.ndarray:
    """[n, K] expected rewards, each decision by the model that has not seen it."""
    fold = folds(len(batch.arm), first)
    shared = 1 + batch.shared.shape[1]
    made = np.empty(batch.own.shape[:2])
    for f in range(FOLDS):
        rows, beta = fold == f, model.coefficients[f].astype(np.float32)
        base = model.coefficients[f, :, 0] + batch.shared[rows] @ beta[:, 1:shared].T
        made[rows] = base + batch.own[rows] @ beta[0, shared:] if batch.own.shape[2] else base
    return made


def expected_features(batch: Batch, target: np.ndarray, use: np.ndarray) -> np.ndarray:
    """[groups, p] Σ over decisions of Σ_a π(a) φ(a), weighted."""
    s = batch.weight[use]
    mass = target[use] * s[:, None]
    ones = np.concatenate([np.ones((use.sum(), 1), np.float32), batch.shared[use]], axis=1)
    if not batch.own.shape[2]:
        return np.einsum("nk,nd->kd", mass, ones)
    own = np.einsum("nk,nkd->d", mass.astype(np.float32), batch.own[use])
    return np.concatenate([mass.sum(axis=1) @ ones, own])[None, :]


def kept_features(batch: Batch, kept: np.ndarray, use: np.ndarray, groups: int) -> np.ndarray:
    """[groups, p] Σ over decisions of the weight kept times φ of the logged arm: where the model cancels."""
    phi, group = _features(batch), _groups(batch)
    heavy = np.where(use, kept * batch.weight, 0)
    return np.stack([(heavy * (group == g)) @ phi for g in range(groups)])


def spread(batch: Batch, residual: np.ndarray, use: np.ndarray, groups: int) -> np.ndarray:
    """[groups, p, p] Σ s² e² φφᵀ over the logged arms."""
    phi, group = _features(batch), _groups(batch)
    made = np.zeros((groups, phi.shape[1], phi.shape[1]))
    for g in range(groups):
        rows = use & (group == g)
        inside = phi[rows] * (batch.weight[rows] * residual[rows])[:, None]
        made[g] = inside.T @ inside
    return made


def model_variance(model: Model, direction: np.ndarray, spread: np.ndarray) -> float:
    """Variance of an estimate that comes from the coefficients: qᵀ G⁻¹ (Σ e² φφᵀ) G⁻¹ q.

    q is how the estimate moves with the coefficients (White 1980, heteroscedastic errors): the mean of Σ_a π(a) φ(a)
    for the direct method; less w φ(a) wherever switch keeps the weight, since there the model cancels.
    """
    along = np.einsum("gpq,gq->gp", model.inverse, direction)
    return float(np.einsum("gp,gpq,gq->", along, spread, along))


def folds(count: int, first: int) -> np.ndarray:
    """The fold of each decision."""
    return (np.arange(count) + first) % FOLDS


def _with_ridge(products: np.ndarray) -> np.ndarray:
    """Σφφᵀ + λI on all but the intercept; on the intercept too where nothing was seen, so that it stays 0."""
    ridge = RIDGE * np.broadcast_to(np.eye(products.shape[-1]), products.shape)
    ridge[..., 0, 0] = np.where(products[..., 0, 0] > 0, 0.0, RIDGE)
    return products + ridge


def _features(batch: Batch) -> np.ndarray:
    """[n, p] φ of the logged arms."""
    rows = np.arange(len(batch.arm))
    ones = np.ones((len(rows), 1), np.float32)
    return np.concatenate([ones, batch.shared, batch.own[rows, batch.arm]], axis=1)


def _groups(batch: Batch) -> np.ndarray:
    return np.zeros(len(batch.arm), np.int32) if batch.own.shape[2] else batch.arm

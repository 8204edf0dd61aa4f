"""A reward model fitted on the log itself: ridge regression, cross-fitted, so that it never predicts what it has seen.

The intercept is not penalized, so adding a number to all rewards adds it to all predictions. An arm that was never
seen is expected to earn what the other arms earn.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from neuralucb.evaluation.decisions import Decisions
from neuralucb.evaluation.estimators import COLUMNS, ESTIMATORS, ModelError, Rounds, Sums, Terms, total
from neuralucb.logs.batches import Batch

__all__ = ["Influence", "Model", "add_influence", "fit", "model_error", "predict"]

FOLDS = 5
RIDGE = 1.0


class Model(NamedTuple):
    """Ridge regression on φ = (1, shared, own) of the logged arm.

    A group is an arm where arms have no features of their own; otherwise there is one group for all arms.
    """

    coefficients: np.ndarray
    """[folds, groups, p] those of a fold are fitted on the other folds"""
    inverse: np.ndarray
    """[groups, p, p] G⁻¹, with G = Σ s φφᵀ + ridge over all folds"""


class Influence(NamedTuple):
    """How the estimates move with the coefficients, and the coefficients with each decision, as sums.

    e is a decision's residual, v its contribution to each column of sums, and k its weight by each estimator.
    """

    expected: np.ndarray
    """[groups, p] Σ s Σ_a π(a) φ(a)"""
    weighted: np.ndarray
    """[groups, p, estimators] Σ s k φ, where the model cancels"""
    joint: np.ndarray
    """[groups, p, columns] Σ s² e φ v"""
    noise: np.ndarray
    """[groups, p, p] Σ s² e² φφᵀ"""

    @classmethod
    def nothing(cls, model: Model) -> "Influence":
        """Before the first decision."""
        shape = model.inverse.shape[:2]
        last = ((), (len(ESTIMATORS),), (len(COLUMNS),), shape[1:])
        return cls(*(np.zeros((*shape, *each)) for each in last))


class _Grams(NamedTuple):
    """Σ s φφᵀ and Σ s φ r of each fold and group."""

    products: np.ndarray
    """[folds, groups, p, p]"""
    sums: np.ndarray
    """[folds, groups, p]"""

    @classmethod
    def nothing(cls, batch: Batch) -> "_Grams":
        _, arms, own = batch.own.shape
        groups, p = (1 if own else arms), 1 + batch.shared.shape[1] + own
        return cls(np.zeros((FOLDS, groups, p, p)), np.zeros((FOLDS, groups, p)))


def fit(parts: Iterable[Decisions]) -> Model | None:
    """For each fold the ridge regression on the other folds, in one pass; None without decisions."""
    grams = None
    for decisions in parts:
        grams = _Grams.nothing(decisions.batch) if grams is None else grams
        _gather(grams, decisions)
    return None if grams is None else _solve(grams)


def predict(model: Model, decisions: Decisions) -> np.ndarray:
    """[n, K] expected rewards, for each decision by the model that has not seen it."""
    batch, fold = decisions.batch, _folds(decisions)
    shared = 1 + batch.shared.shape[1]
    made = np.empty(batch.own.shape[:2])
    for f in range(FOLDS):
        rows, beta = fold == f, model.coefficients[f].astype(np.float32)
        base = model.coefficients[f, :, 0] + batch.shared[rows] @ beta[:, 1:shared].T
        made[rows] = base + batch.own[rows] @ beta[0, shared:] if batch.own.shape[2] else base
    return made


def add_influence(influence: Influence, decisions: Decisions, rounds: Rounds, terms: Terms) -> Influence:
    """Add decisions; `rounds` and `terms` are of those in use."""
    batch, use, s = decisions.batch, decisions.use, rounds.stands_for
    phi, group = _features(batch)[use], _groups(batch)[use]
    residual = rounds.reward - rounds.predicted[np.arange(len(s)), rounds.arm]
    values, weights = (part * s[:, None] for part in terms)
    weighted, joint, noise = (np.zeros_like(part) for part in influence[1:])
    p = phi.shape[1]
    for g in range(len(noise)):
        rows = group == g
        weighted[g] = np.einsum("np,ne->pe", phi[rows], weights[rows])
        moved = phi[rows] * (s[rows] * residual[rows])[:, None]
        products = _with_itself(np.concatenate([moved, values[rows]], axis=1))
        noise[g], joint[g] = products[:p, :p], products[:p, p:]
    added = (_expected_features(decisions, rounds), weighted, joint, noise)
    return Influence(*(old + new for old, new in zip(influence, added, strict=True)))


def model_error(model: Model, influence: Influence, method: str, sums: Sums) -> ModelError:
    """How the errors of the coefficients enter the estimate by a method.

    The estimate moves with the coefficients by q = Σ s (Σ_a π(a) φ(a) - k φ)/Σ s b, where b is what its sum is divided
    by. A decision moves the coefficients by G⁻¹ φ s e, and so the estimate by u = s e αᵀφ with α = G⁻¹ q. Residuals may
    have different variances (White 1980).
    """
    weighted = influence.weighted[..., list(ESTIMATORS).index(method)]
    direction = (influence.expected - weighted) / total(sums, ESTIMATORS[method].per)
    along = np.einsum("gpq,gq->gp", model.inverse, direction)
    with_columns = np.einsum("gp,gpc->c", along, influence.joint)
    return ModelError(with_columns, float(np.einsum("gp,gpq,gq->", along, influence.noise, along)))


def _gather(grams: _Grams, decisions: Decisions) -> None:
    """Add a batch to the sums, in place."""
    batch = decisions.batch
    phi, group, fold = _features(batch), _groups(batch), _folds(decisions)
    for f in range(FOLDS):
        for g in range(grams.sums.shape[1]):
            rows = decisions.use & (fold == f) & (group == g)
            if rows.any():
                root = np.sqrt(batch.weight[rows])
                inside = phi[rows] * root[:, None]
                grams.products[f, g] += _with_itself(inside)
                grams.sums[f, g] += inside.T @ (root * batch.reward[rows])


def _solve(grams: _Grams) -> Model:
    products, sums = grams.products.sum(axis=0), grams.sums.sum(axis=0)
    others, rewards = products - grams.products, sums - grams.sums
    mean = rewards[..., 0].sum(axis=1) / np.maximum(others[..., 0, 0].sum(axis=1), np.finfo(np.float64).tiny)
    centred = rewards - mean[:, None, None] * others[..., 0]
    coefficients = np.linalg.solve(_with_ridge(others), centred[..., None])[..., 0]
    coefficients[..., 0] += mean[:, None]
    return Model(coefficients, np.linalg.inv(_with_ridge(products)))


def _with_ridge(products: np.ndarray) -> np.ndarray:
    """Σ s φφᵀ + λI on all but the intercept; on the intercept too where nothing was seen, so that it stays 0."""
    ridge = RIDGE * np.broadcast_to(np.eye(products.shape[-1]), products.shape)
    ridge[..., 0, 0] = np.where(products[..., 0, 0] > 0, 0.0, RIDGE)
    return products + ridge


def _expected_features(decisions: Decisions, rounds: Rounds) -> np.ndarray:
    """[groups, p] Σ s Σ_a π(a) φ(a)."""
    shared, own = (part[decisions.use] for part in (decisions.batch.shared, decisions.batch.own))
    mass = rounds.target * rounds.stands_for[:, None]
    ones = np.concatenate([np.ones((len(mass), 1), np.float32), shared], axis=1)
    if not own.shape[2]:
        return np.einsum("nk,nd->kd", mass, ones)
    of_arms = np.einsum("nk,nkd->d", mass.astype(np.float32), own)
    return np.concatenate([mass.sum(axis=1) @ ones, of_arms])[None, :]


def _with_itself(rows: np.ndarray) -> np.ndarray:
    """AᵀA. Unlike other products it does not wait for threads, which takes long on a busy machine."""
    return rows.T @ rows


def _features(batch: Batch) -> np.ndarray:
    """[n, p] φ of the logged arms."""
    rows = np.arange(len(batch.arm))
    ones = np.ones((len(rows), 1), np.float32)
    return np.concatenate([ones, batch.shared, batch.own[rows, batch.arm]], axis=1)


def _groups(batch: Batch) -> np.ndarray:
    """[n] of the logged arms."""
    return np.zeros(len(batch.arm), np.int32) if batch.own.shape[2] else batch.arm


def _folds(decisions: Decisions) -> np.ndarray:
    """[n] decision i of the part is in fold i mod 5."""
    return (np.arange(len(decisions.use)) + decisions.first) % FOLDS

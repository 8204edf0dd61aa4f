"""Algorithms 1 and 2 of Zhou, Li & Gu 2020, line by line, with Z as an explicit matrix."""

import numpy as np


def network(weights, x, factor):
    """f(x; θ) = factor · W_L σ(W_{L-1} … σ(W_1 x))."""
    for matrix in weights[:-1]:
        x = np.maximum(matrix @ x, 0.0)
    return factor * float(weights[-1] @ x)


def gradient(weights, x, factor):
    """∇_θ f, one array a layer, by the chain rule."""
    activations = [x]
    for matrix in weights[:-1]:
        activations.append(np.maximum(matrix @ activations[-1], 0.0))
    layers = [None] * len(weights)
    layers[-1] = factor * activations[-1]
    upstream = factor * weights[-1]
    for layer in range(len(weights) - 2, -1, -1):
        upstream = np.where(activations[layer + 1] > 0, upstream, 0.0)
        layers[layer] = upstream[:, None] * activations[layer][None, :]
        upstream = weights[layer].T @ upstream
    return layers


def flat(layers):
    return np.concatenate([layer.reshape(-1) for layer in layers])


def train_nn(weights, initial, contexts, rewards, *, factor, pull, step_size, steps):
    """Algorithm 2: J steps of gradient descent on the sum."""
    weights = [matrix.copy() for matrix in weights]
    for _ in range(steps):
        slope = [pull * (now - start) for now, start in zip(weights, initial, strict=True)]
        for x, r in zip(contexts, rewards, strict=True):
            error = network(weights, x, factor) - r
            slope = [s + error * g for s, g in zip(slope, gradient(weights, x, factor), strict=True)]
        weights = [now - step_size * s for now, s in zip(weights, slope, strict=True)]
    return weights


def train_sgd(weights, initial, contexts, rewards, *, factor, pull, step_size, batches):
    """The experiments' version: one step for each batch of row numbers, on the mean, pull divided by t.

    step_size is one number, or one for each batch.
    """
    weights = [matrix.copy() for matrix in weights]
    for rows, eta in zip(batches, np.broadcast_to(step_size, len(batches)), strict=True):
        slope = [pull / len(rewards) * (now - start) for now, start in zip(weights, initial, strict=True)]
        for row in rows:
            error = (network(weights, contexts[row], factor) - rewards[row]) / len(rows)
            slope = [s + error * g for s, g in zip(slope, gradient(weights, contexts[row], factor), strict=True)]
        weights = [now - eta * s for now, s in zip(weights, slope, strict=True)]
    return weights


def train_in_passes(
    weights, initial, contexts, rewards, *, factor, pull, step_size, order, most, early_end, batch_size=1
):
    """The authors' released code: rows in one order, again and again, until J steps or a pass of small mean loss.

    Ours where it differs: the pull. Minibatches, which it does not have, may reach into the next pass.
    """
    made, losses = 0, []
    while True:
        rows = [order[place % len(order)] for place in range(made * batch_size, (made + 1) * batch_size)]
        losses.append(np.mean([(network(weights, contexts[row], factor) - rewards[row]) ** 2 for row in rows]))
        shared = {"factor": factor, "pull": pull, "step_size": step_size}
        weights = train_sgd(weights, initial, contexts, rewards, batches=[rows], **shared)
        made += 1
        if made >= most:
            return weights, made
        if made * batch_size // len(order) > (made - 1) * batch_size // len(order):
            if np.mean(losses) <= early_end:
                return weights, made
            losses = []


def gamma(t, log_det, *, m, L, lam, nu, delta, S, eta, J, C=(1.0, 1.0, 1.0)):
    """Line 13 of Algorithm 1."""
    c = m ** (-1 / 6) * np.sqrt(np.log(m))
    first = np.sqrt(1 + C[0] * c * L**4 * t ** (7 / 6) * lam ** (-7 / 6))
    second = nu * np.sqrt(log_det + C[1] * c * L**4 * t ** (5 / 3) * lam ** (-1 / 6) - 2 * np.log(delta))
    third = (1 - eta * m * lam) ** (J / 2) * np.sqrt(t / lam)
    fourth = c * L**3.5 * t ** (5 / 3) * lam ** (-5 / 3) * (1 + np.sqrt(t / lam))
    return first * (second + np.sqrt(lam) * S) + (lam + C[2] * t * L) * (third + fourth)


class NeuralUCB:
    """The state of Algorithm 1. `factor` is √m (1 in standard scaling), `diagonal` keeps diag(Z) alone."""

    def __init__(self, initial, *, regularization, factor, diagonal=False):
        self.initial = [np.asarray(matrix, np.float64) for matrix in initial]
        self.weights = [matrix.copy() for matrix in self.initial]
        self.factor, self.diagonal, self.regularization = factor, diagonal, regularization
        self.Z = regularization * np.eye(flat(self.initial).size)
        self.contexts, self.rewards = [], []

    def widths(self, contexts):
        inverse = np.linalg.inv(self.Z)
        scaled = [flat(gradient(self.weights, x, self.factor)) / self.factor for x in contexts]
        return np.array([np.sqrt(g @ inverse @ g) for g in scaled])

    def means(self, contexts):
        return np.array([network(self.weights, x, self.factor) for x in contexts])

    def upper(self, contexts, scale):
        """Line 7: U for every arm."""
        return self.means(contexts) + scale * self.widths(contexts)

    def observe(self, x, reward):
        """Line 11: Z at the θ that chose."""
        g = flat(gradient(self.weights, x, self.factor)) / self.factor
        self.Z = self.Z + (np.diag(g * g) if self.diagonal else np.outer(g, g))
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self, *, pull, step_size, steps, warm=False):
        """Line 12."""
        start = self.weights if warm else self.initial
        self.weights = train_nn(
            start, self.initial, self.contexts, self.rewards,
            factor=self.factor, pull=pull, step_size=step_size, steps=steps,
        )  # fmt: skip

    def log_det(self):
        return np.linalg.slogdet(self.Z)[1] - len(self.Z) * np.log(self.regularization)

"""Regressions on a network's last hidden layer, with explicit matrices: NeuralLinear, BDQN, Neural-LinUCB and kin."""

import numpy as np

from tests.reference.neural_ucb import gradient, network, train_nn


def hidden(weights, x):
    """φ(x; θ), the last hidden layer."""
    for matrix in weights[:-1]:
        x = np.maximum(matrix @ x, 0.0)
    return x


def train_shallow(weights, initial, contexts, rewards, coefficients, *, pull, step_size, steps):
    """Gradient descent on Σ (ϑᵀφ(x; θ) - r)²/2 + pull‖θ - θ_0‖²/2 over the layers below the last, ϑ held."""
    weights = [matrix.copy() for matrix in weights]
    for _ in range(steps):
        slope = [pull * (now - start) for now, start in zip(weights, initial, strict=True)]
        for x, r in zip(contexts, rewards, strict=True):
            whole = [*weights[:-1], coefficients]
            error = network(whole, x, 1.0) - r
            below = gradient(whole, x, 1.0)[:-1]
            slope = [s + error * g for s, g in zip(slope[:-1], below, strict=True)] + slope[-1:]
        weights = [now - step_size * s for now, s in zip(weights, slope, strict=True)]
    return weights


class LastLayer:
    """What they share: the network, the data, and a regression A = λI + Σ φφᵀ, b = Σ rφ."""

    def __init__(self, initial, *, lam, factor):
        self.initial = [np.asarray(matrix, np.float64) for matrix in initial]
        self.weights = [matrix.copy() for matrix in self.initial]
        self.lam, self.factor = lam, factor
        self.contexts, self.rewards = [], []
        self.A, self.b = self.regress([], [])

    def regress(self, contexts, rewards):
        size = self.initial[-1].size
        A, b = self.lam * np.eye(size), np.zeros(size)
        for x, r in zip(contexts, rewards, strict=True):
            phi = hidden(self.weights, x)
            A, b = A + np.outer(phi, phi), b + r * phi
        return A, b

    def means(self, contexts):
        return np.array([hidden(self.weights, x) @ np.linalg.solve(self.A, self.b) for x in contexts])

    def widths(self, contexts):
        features = [hidden(self.weights, x) for x in contexts]
        return np.sqrt([phi @ np.linalg.solve(self.A, phi) for phi in features])

    def observe(self, x, reward):
        self.contexts.append(x)
        self.rewards.append(reward)
        phi = hidden(self.weights, x)
        self.A, self.b = self.A + np.outer(phi, phi), self.b + reward * phi


class NeuralLinear(LastLayer):
    """Riquelme et al. 2018: an inverse gamma prior on σ², here at its mean; everything on the newest features."""

    def widths(self, contexts):
        mu = np.linalg.solve(self.A, self.b)
        a = 6 + len(self.rewards) / 2
        b = 6 + (np.square(self.rewards).sum() - mu @ self.A @ mu) / 2
        return np.sqrt(b / (a - 1)) * super().widths(contexts)

    def learn(self, *, pull, step_size, steps):
        self.weights = train_nn(
            self.initial, self.initial, self.contexts, self.rewards,
            factor=self.factor, pull=pull, step_size=step_size, steps=steps,
        )  # fmt: skip
        self.A, self.b = self.regress(self.contexts, self.rewards)


class BDQN(LastLayer):
    """Azizzadenesheli et al. 2018, horizon 1: nothing changes between trainings."""

    def observe(self, x, reward):
        self.contexts.append(x)
        self.rewards.append(reward)

    def learn(self, **training):
        A, b = self.regress(self.contexts, self.rewards)
        self.weights = train_shallow(
            self.initial, self.initial, self.contexts, self.rewards, np.linalg.solve(A, b), **training
        )
        self.A, self.b = self.regress(self.contexts, self.rewards)


class NeuralLinUCB(LastLayer):
    """Xu et al. 2022, Algorithm 1: A and b keep the features of each round."""

    def learn(self, **training):
        A, b = self.regress(self.contexts, self.rewards)
        self.weights = train_shallow(
            self.initial, self.initial, self.contexts, self.rewards, np.linalg.solve(A, b), **training
        )


class NeuralVarianceLinUCB(NeuralLinUCB):
    """Bui et al. 2025: rows over σ_t, a bound on their deviation."""

    def __init__(self, initial, *, lam, factor, least):
        self.least = least
        super().__init__(initial, lam=lam, factor=factor)

    def regress(self, contexts, rewards):
        size = self.initial[-1].size
        A, b = self.lam * np.eye(size), np.zeros(size)
        for row, x in enumerate(contexts):
            A, b = self.add(A, b, x, rewards[: row + 1])
        return A, b

    def add(self, A, b, x, rewards):
        """One more row; the last of `rewards` is its own."""
        phi = hidden(self.weights, x)
        low, high = min(rewards), max(rewards)
        mean = np.clip(phi @ np.linalg.solve(A, b), low, high)
        variance = max((high - mean) * (mean - low), self.least * (high - low) ** 2) if high > low else 1.0
        return A + np.outer(phi, phi) / variance, b + rewards[-1] * phi / variance

    def observe(self, x, reward):
        self.contexts.append(x)
        self.rewards.append(reward)
        self.A, self.b = self.add(self.A, self.b, x, self.rewards)


class NeuralLinearLM(LastLayer):
    """Zahavy & Mannor 2019: the last `memory` rows, whose variances are carried over to new features."""

    def __init__(self, initial, *, lam, factor, memory):
        self.memory = memory
        super().__init__(initial, lam=lam, factor=factor)

    def outputs(self, contexts):
        return np.array([network(self.weights, x, self.factor) for x in contexts])

    def means(self, contexts):
        return self.outputs(contexts) + super().means(contexts)

    def observe(self, x, reward):
        missed = reward - network(self.weights, x, self.factor)
        super().observe(x, missed)
        self.rewards[-1] = reward

    def learn(self, *, pull, step_size, steps):
        stored, rewards = self.contexts[-self.memory :], self.rewards[-self.memory :]
        wanted = self.widths(stored) ** 2
        self.weights = train_nn(
            self.initial, self.initial, stored, rewards,
            factor=self.factor, pull=pull, step_size=step_size, steps=steps,
        )  # fmt: skip
        features = np.array([hidden(self.weights, x) for x in stored])
        weights = np.ones(len(stored))
        for _ in range(10):
            Z = self.lam * np.eye(len(self.b)) + features.T @ (weights[:, None] * features)
            found = np.einsum("ij,ji->i", features, np.linalg.solve(Z, features.T))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(wanted > 0, found / wanted, 1.0)
            weights = weights * np.clip(ratio, 0.25, 4.0)
        self.A = self.lam * np.eye(len(self.b)) + features.T @ (weights[:, None] * features)
        self.b = np.zeros_like(self.b)

"""NeuralUCB in plain PyTorch, as released code does it: eager, one backward pass per arm, torch.optim.SGD.

Written for this benchmark. On one context per arm it is the paper's protocol (Zhou et al. 2020, Section 7.1: full Z,
every 50 rounds J = t minibatch steps from θ_0); on labelled data that of the authors' released code (diagonal Z,
inputs (0, …, x, …, 0), after every round up to 2000 and then after every 100th up to 1000 steps of one row each, or
until the mean loss of a pass is at most 0.001).
"""

import numpy as np
import torch
from streams import Stream

__all__ = ["Paper", "Released", "make"]


def make(stream: Stream, variant: str) -> "Paper | Released":
    """The protocol that belongs to the stream."""
    torch.set_num_threads(1)
    torch.manual_seed(stream.seed)
    return (Released if stream.shared else Paper)(stream)


class Paper:
    """f(x) = √m W_2 relu(W_1 x), m = 20, λ = 1, γ = 0.1, η = 0.05, B = 50."""

    def __init__(self, stream: Stream, width: int = 20) -> None:
        self.width = width
        first = torch.randn(width, stream.dim) * (2 / width) ** 0.5
        last = torch.randn(width) * (1 / width) ** 0.5
        self.initial = [first, last]
        self.weights = [w.clone().requires_grad_() for w in self.initial]
        self.inverse = torch.eye(first.numel() + last.numel(), dtype=torch.float64)
        self.contexts = torch.empty(stream.rounds, stream.dim)
        self.rewards = torch.empty(stream.rounds)
        self.seen = 0

    def value(self, rows: torch.Tensor) -> torch.Tensor:
        first, last = self.weights
        return self.width**0.5 * (torch.relu(rows @ first.T) @ last)

    def gradient(self, value: torch.Tensor) -> torch.Tensor:
        """g/√m of one arm, by a backward pass."""
        for w in self.weights:
            w.grad = None
        value.backward(retain_graph=True)
        return torch.cat([w.grad.flatten() for w in self.weights]).double() / self.width**0.5

    def select(self, contexts: np.ndarray) -> int:
        values = self.value(torch.from_numpy(contexts))
        gradients = [self.gradient(value) for value in values]
        scores = [float(v) + 0.1 * float(g @ self.inverse @ g) ** 0.5 for v, g in zip(values, gradients, strict=True)]
        arm = int(np.argmax(scores))
        self.chosen = gradients[arm]
        return arm

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        w = self.inverse @ self.chosen
        self.inverse -= torch.outer(w, w) / (1 + self.chosen @ w)
        self.contexts[self.seen], self.rewards[self.seen] = torch.from_numpy(contexts[arm]), reward
        self.seen += 1
        if self.seen % 50 == 0:
            self.train()

    def train(self) -> None:
        self.weights = [w.clone().requires_grad_() for w in self.initial]
        optimizer = torch.optim.SGD(self.weights, lr=0.05)
        for _ in range(self.seen):
            rows = torch.randint(0, self.seen, (50,))
            pull = sum(((w - w0) ** 2).sum() for w, w0 in zip(self.weights, self.initial, strict=True))
            loss = 0.5 * ((self.value(self.contexts[rows]) - self.rewards[rows]) ** 2).mean()
            loss = loss + 0.5 * self.width / self.seen * pull
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


class Released:
    """Two linear layers with biases, 100 units, λ = ν = 1e-5, SGD at 0.01 with weight decay λ, one row a step."""

    RIDGE = NU = 1e-5

    def __init__(self, stream: Stream, width: int = 100) -> None:
        self.arms, self.dim = stream.arms, stream.dim
        inputs = self.arms * self.dim
        self.network = torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
        self.design = self.RIDGE * torch.ones(sum(w.numel() for w in self.network.parameters()))
        self.contexts: list[torch.Tensor] = []
        self.rewards: list[float] = []
        self.random = np.random.default_rng(stream.seed)
        self.round = 0

    def select(self, contexts: np.ndarray) -> int:
        padded = torch.zeros(self.arms, self.arms, self.dim)
        padded[range(self.arms), range(self.arms)] = torch.from_numpy(contexts)
        self.padded = padded.reshape(self.arms, -1)
        scores, gradients = [], []
        for value in self.network(self.padded):
            self.network.zero_grad()
            value.backward(retain_graph=True)
            g = torch.cat([w.grad.flatten() for w in self.network.parameters()])
            scores.append(value.item() + torch.sqrt(torch.sum(self.RIDGE * self.NU * g * g / self.design)).item())
            gradients.append(g)
        arm = int(np.argmax(scores))
        self.design += gradients[arm] * gradients[arm]
        return arm

    def update(self, contexts: np.ndarray, arm: int, reward: float) -> None:
        self.round += 1
        if self.round <= 2000 or self.round % 100 == 0:  # the rounds between are not kept, as in that code
            self.contexts.append(self.padded[arm : arm + 1])
            self.rewards.append(reward)
            self.train()

    def train(self) -> None:
        optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, weight_decay=self.RIDGE)
        order, steps = self.random.permutation(len(self.rewards)), 0
        while True:
            total = 0.0
            for row in order:
                optimizer.zero_grad()
                error = self.network(self.contexts[row]) - self.rewards[row]
                loss = (error * error).sum()
                loss.backward()
                optimizer.step()
                total += loss.item()
                steps += 1
                if steps >= 1000:
                    return
            if total / len(order) <= 1e-3:
                return

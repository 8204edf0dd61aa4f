"""NeuralMix in learned units, from its equations: every Z inverted anew, every unit from the whole history."""

import numpy as np

from tests.reference.neural_ucb import flat, gradient, network


def quantile_of_those_who_deviate(deviations, share):
    """Their share-th quantile, the lower of two neighbours; 0 if nobody deviates."""
    varied = np.sort(deviations[deviations > 0])
    return varied[int(share * (len(varied) - 1))] if len(varied) else 0.0


def lower_median(values):
    return np.sort(values)[(len(values) - 1) // 2]


class Units:
    """Of every input its middle and spread; of rewards their mean, deviation and bounds."""

    def __init__(self, contexts, rewards):
        columns = np.asarray(contexts, np.float64).T
        self.middle, self.spread = np.transpose([self.of_input(values) for values in columns])
        self.mean, self.deviation, self.low, self.high = self.of_rewards(np.asarray(rewards, np.float64))

    @staticmethod
    def of_input(values):
        if len(set(values)) <= 2:
            return values.min(), values.max() - values.min()
        middle = lower_median(values)
        return middle, quantile_of_those_who_deviate(abs(values - middle), 0.683)

    @staticmethod
    def of_rewards(rewards):
        median = lower_median(rewards)
        reach = (2 + min(len(rewards) / 200, 1)) * quantile_of_those_who_deviate(abs(rewards - median), 0.9)
        bounded = np.clip(rewards, median - reach, median + reach)
        return bounded.mean(), bounded.std() or 1.0, median - reach, median + reach

    def show(self, x):
        """0.3 for one deviation, beyond three logarithmic and at most ten; an input without unit by its side."""
        shown = []
        for value, middle, spread in zip(x, self.middle, self.spread, strict=True):
            size = abs(value - middle) / spread if spread > 0 else 1.0
            size = size if size <= 3 else min(3 + np.log(1 + size - 3), 10)
            shown.append(0.3 * np.sign(value - middle) * size)
        return np.array([*shown, 1.0])

    def show_reward(self, reward):
        return (min(max(reward, self.low), self.high) - self.mean) / self.deviation

    def are_far_from(self, other):
        mine = [*zip(self.middle, self.spread, strict=True), (self.mean, self.deviation)]
        theirs = [*zip(other.middle, other.spread, strict=True), (other.mean, other.deviation)]
        varied = (self.low < self.high) == (other.low < other.high)
        return not varied or any(
            max(s, z) > 1.5 * min(s, z) or abs(m - n) > max(s, z) / 2
            for (m, s), (n, z) in zip(mine, theirs, strict=True)
        )


class NoUnits:
    """Before the first lesson: inputs are 0, rewards as they are."""

    mean, deviation = 0.0, 1.0

    def show(self, x):
        return np.array([*np.zeros(len(x)), 1.0])

    def show_reward(self, reward):
        return reward


class Network:
    """NeuralUCB with its own pull: W_1 to W_L, the last with a row per arm where arms share their context."""

    def __init__(self, initial, pull, *, diagonal):
        self.initial = [np.asarray(matrix, np.float64) for matrix in initial]
        self.weights = [matrix.copy() for matrix in self.initial]
        self.pull, self.diagonal = pull, diagonal
        self.forget()

    def forget(self):
        self.Z = self.pull * np.eye(flat(self.weights).size)

    def view(self, arm):
        return [*self.weights[:-1], self.weights[-1] if arm is None else self.weights[-1][arm]]

    def mean(self, x, arm):
        return network(self.view(arm), x, 1.0)

    def slope(self, x, arm):
        """∇f, 0 for the rows of other arms."""
        layers = gradient(self.view(arm), x, 1.0)
        if arm is not None:
            own, layers[-1] = layers[-1], np.zeros_like(self.weights[-1])
            layers[-1][arm] = own
        return layers

    def width(self, x, arm):
        g = flat(self.slope(x, arm))
        return np.sqrt(g @ np.linalg.solve(self.Z, g))

    def observe(self, x, arm, reward):
        g = flat(self.slope(x, arm))
        self.Z = self.Z + (np.diag(g * g) if self.diagonal else np.outer(g, g))

    def loss(self, rows):
        """L/t, with its pull."""
        error = sum((self.mean(x, arm) - r) ** 2 for x, arm, r in rows) / 2
        away = flat(self.weights) - flat(self.initial)
        return (error + self.pull * away @ away / 2) / len(rows)

    def learn(self, rows, batches, step_size):
        """Adam (Kingma & Ba 2015), from zero moments, its steps shortened linearly to 0."""
        first = second = np.zeros(flat(self.weights).size)
        for j, batch in enumerate(batches):
            slope = self.pull / len(rows) * (flat(self.weights) - flat(self.initial))
            for x, arm, r in (rows[row] for row in batch):
                slope = slope + (self.mean(x, arm) - r) * flat(self.slope(x, arm)) / len(batch)
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            step = first / (1 - 0.9 ** (j + 1)) / (np.sqrt(second / (1 - 0.999 ** (j + 1))) + 1e-8)
            moved = flat(self.weights) - step_size * (1 - j / len(batches)) * step
            ends = np.cumsum([matrix.size for matrix in self.weights])[:-1]
            parts = np.split(moved, ends)
            self.weights = [part.reshape(old.shape) for part, old in zip(parts, self.weights, strict=True)]


class Regression:
    """LinUCB on features φ(x), with a model per arm where arms share their context; with a memory it forgets."""

    def __init__(self, phi, dim, arms, memory=None):
        self.phi, self.dim, self.arms = phi, len(phi(np.zeros(dim))), arms
        self.keep = 1 - 1 / memory if memory else 1.0
        self.forget()

    def forget(self):
        self.A = {arm: np.eye(self.dim) for arm in range(self.arms or 1)}
        self.b = {arm: np.zeros(self.dim) for arm in range(self.arms or 1)}
        self.seen = dict.fromkeys(self.A, 0)

    def mean(self, x, arm):
        return self.phi(x) @ np.linalg.solve(self.A[arm or 0], self.b[arm or 0])

    def width(self, x, arm):
        return np.sqrt(self.phi(x) @ np.linalg.solve(self.A[arm or 0], self.phi(x)))

    def observe(self, x, arm, reward):
        phi, arm = self.phi(x), arm or 0
        self.A[arm] = self.keep * self.A[arm] + np.outer(phi, phi)
        self.A[arm][(self.seen[arm] % self.dim,) * 2] += 1 - self.keep**self.dim
        self.b[arm] = self.keep * self.b[arm] + reward * phi
        self.seen[arm] += 1


def with_products(x):
    """x, and 10/√d times the products of its inputs, of which the last, the intercept, is not one."""
    d = len(x) - 1
    return np.array([*x, *(10 / np.sqrt(d) * x[i] * x[j] for i in range(d) for j in range(i, d))])


class NeuralMix:
    """U_a = Σ_j w_j a_j (f_j + γ σ (width_j + κ/√(1 + n_a))), in units that are learned at lessons.

    `initials` are θ_0 of each network. The term with n_a is only there where arms share their context.

    `rounding` is what inputs, rewards and units go through: by default nothing; `np.float32` shows what that does.
    """

    def __init__(
        self,
        initials,
        *,
        dim,
        arms,
        regularization,
        discount,
        sharpness,
        exploration,
        novelty,
        recent,
        diagonal,
        rounding=np.asarray,
    ):
        pulls = (regularization / 30, regularization, 30 * regularization)
        self.networks = [
            Network(initial, pull, diagonal=diagonal) for initial, pull in zip(initials, pulls, strict=True)
        ]
        self.regressions = [
            Regression(phi, dim + 1, arms, memory) for memory in (None, recent) for phi in (np.copy, with_products)
        ]
        self.members = [*self.networks, *self.regressions]
        self.discount, self.sharpness, self.exploration, self.novelty = discount, sharpness, exploration, novelty
        self.rounding = rounding
        self.units, self.settled, self.history = NoUnits(), 0, []
        self.forget_errors()

    def show(self, x):
        return self.rounding(self.units.show(x)).astype(np.float64)

    def show_reward(self, reward):
        return float(self.rounding(self.units.show_reward(reward)))

    def forget_errors(self):
        self.errors, self.count = np.zeros(len(self.members)), 0.0
        self.products, self.squares = np.zeros(len(self.members)), np.zeros(len(self.members))

    def least_error(self):
        return max(self.errors.min() / self.count, 0.01) if self.count else 1.0

    def weights(self):
        places = np.array(
            [1, 1, 1, 0.5, 0.5, 0.5, 0.5]
        )  # a regression that forgets shares that of the one that does not
        shares = places * np.exp(-self.sharpness * (self.errors - self.errors.min()) / (2 * self.least_error()))
        return shares / shares.sum()

    def slopes(self):
        """As if thirty predictions of one deviation had been right before the first."""
        return np.clip(3 * (self.products + 30) / (self.squares + 30), 0, 1)

    def predict(self, x, arm):
        """Mean and width in the caller's units."""
        shown, shares = self.show(x), self.weights() * self.slopes()
        mean = shares @ [member.mean(shown, arm) for member in self.members]
        noise = min(max(np.sqrt(self.least_error()), 0.5), 1)
        widths = [member.width(shown, arm) for member in self.members[:5]]
        width = shares @ [*widths, *widths[3:]]  # those that forget take the widths of those that do not
        if arm is not None:
            plays = sum(arm == played for _, played, _ in self.history)
            width = width + shares.sum() * self.novelty / np.sqrt(1 + plays)
        width = noise * width
        return self.units.mean + self.units.deviation * mean, self.units.deviation * width

    def observe(self, x, arm, reward):
        shown, scaled = self.show(x), self.show_reward(reward)
        predicted = np.array([member.mean(shown, arm) for member in self.members])
        missed = self.slopes() * predicted - scaled
        self.errors, self.count = self.discount * self.errors + missed**2, self.discount * self.count + 1
        self.products = self.discount * self.products + predicted * scaled
        self.squares = self.discount * self.squares + predicted**2
        for member in self.members:
            member.observe(shown, arm, scaled)
        self.history.append((x, arm, reward))

    def learn(self, batches, step_size):
        """Returns whether units changed, and of each network L/t before and after."""
        contexts, arms, rewards = zip(*self.history, strict=True)
        new, old = Units(contexts, rewards), self.units
        changed = isinstance(old, NoUnits) or len(rewards) >= 2 * self.settled or new.are_far_from(old)
        if changed:
            self.units, self.settled = new, len(rewards)
            for name, value in vars(new).items():
                setattr(new, name, self.rounding(value).astype(np.float64))
        rows = [(self.show(x), arm, self.show_reward(r)) for x, arm, r in zip(contexts, arms, rewards, strict=True)]
        losses = []
        for member in self.networks:
            before = member.loss(rows)
            member.learn(rows, batches, step_size)
            losses.append((before, member.loss(rows)))
        if changed:
            self.bring_errors_from(old)
            for member in self.members:
                member.forget()
                for row in rows:
                    member.observe(*row)
        return changed, losses

    def bring_errors_from(self, old):
        ratio = old.deviation / self.units.deviation
        if isinstance(old, NoUnits) or not 1 / 1.5 <= ratio <= 1.5:
            self.forget_errors()
        else:
            self.errors, self.products, self.squares = (
                ratio**2 * each for each in (self.errors, self.products, self.squares)
            )

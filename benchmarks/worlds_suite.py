"""48 small contextual-bandit worlds that look like data people have: odd units, heavy tails, rare rewards, drift.

A world is a function of (name, seed): `make_world("tree", 0).draw(t)` is the same round whenever it is asked for.
The seed also draws the truth, so that seeds are different worlds of one kind. Latent features with a scale near 1 give
the truth; what a player sees is a view of them, in whatever units, and rewards come from a payoff. Players must not
know any of that.

Worlds come in pairs of a kind, and one of each pair is held out: the second, the first, the second, … in the order
below. That was fixed before anything was played. Since then `hills`, `network` and the rate of "rare-curved" changed
once, after Vowpal Wabbit alone had played the open worlds: a line nearly solved some that were meant to be curved.

python benchmarks/worlds_suite.py      # what each world is like, and what an oracle gains over uniform
"""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["WORLDS", "Round", "World", "make_world", "rounds_of", "split_of"]

ROUNDS = 1500
CALIBRATION = 300
"""Rounds drawn to standardise a truth."""

Generator = np.random.Generator
Array = np.ndarray[Any, Any]


class Round(NamedTuple):
    """One round. A player sees the contexts and what is available, and later the reward of the arm it chose."""

    contexts: Array
    """[K, d] float64"""
    expected: Array
    """[K] expected rewards, for the regret"""
    rewards: Array
    """[K] the reward that each arm would bring"""
    available: Array | None
    """[K] booleans, or None if all arms are"""
    delay: int
    """rounds until the reward is known; 0: before the next round"""

    def regrets(self) -> Array:
        """[K] the best expected reward of those available, less each arm's; NaN for arms that are not."""
        expected = self.expected if self.available is None else np.where(self.available, self.expected, np.nan)
        return np.nanmax(expected) - expected


class Recipe(NamedTuple):
    """How to make a world. Each part takes the world's generator and returns what a round calls."""

    kind: str
    latents: Callable[[Generator], Callable[[Generator, int], Array]]
    """(generator of the round, t) -> [K, l]; NaN where a value is missing"""
    truth: Callable[[Generator, int], Callable[[Array, float], Array]]
    """made for l latents: ([K, l] without NaN, progress from 0 to 1) -> [K], standardised by `make_world`"""
    payoff: Callable[[Generator, int], "Payoff"]
    view: Callable[[Generator, int], Callable[[Array, int], Array]] | None = None
    """made for l latents: ([K, l], t) -> contexts [K, d]; None: the latents themselves"""
    available: Callable[[Generator, int], Callable[[Generator, int], Array]] | None = None
    """made for K arms"""
    delay: Callable[[Generator], int] | None = None
    rounds: int = ROUNDS
    stream: str | None = None
    """the world whose random numbers it shares, if it is that world in other units"""


class Payoff(NamedTuple):
    """From the standardised truth to rewards."""

    expect: Callable[[Generator, Array], Array]
    draw: Callable[[Generator, Array, int], Array]


class World:
    """A world: what it is called, its size, and its rounds."""

    def __init__(self, name: str, seed: int, rounds: int | None = None) -> None:
        recipe = _RECIPES[name]
        self.name, self.seed, self.kind, self.split = name, seed, recipe.kind, split_of(name)
        self.rounds = rounds_of(name, rounds)
        self._recipe = recipe
        self._entropy = (zlib.crc32((recipe.stream or name).encode()), seed)
        made = self._generator()
        self._latents = recipe.latents(made)
        self.arms, width = self._latents(self._generator(0), 0).shape
        self._truth = recipe.truth(made, width)
        self._view = None if recipe.view is None else recipe.view(made, width)
        self._payoff = recipe.payoff(made, recipe.rounds)
        self._available = None if recipe.available is None else recipe.available(made, self.arms)
        self._centre, self._scale = self._calibrate()
        first = self.draw(0)
        self.dim: int = first.contexts.shape[1]

    def draw(self, t: int) -> Round:
        """Round t, from 0."""
        random = self._generator(t)
        latents = self._latents(random, t)
        truth = (self._truth(np.nan_to_num(latents, nan=0.0), t / self._recipe.rounds) - self._centre) / self._scale
        contexts = latents if self._view is None else self._view(latents, t)
        expected = self._payoff.expect(random, truth)
        rewards = self._payoff.draw(random, expected, t)
        available = None if self._available is None else self._available(random, t)
        delay = 0 if self._recipe.delay is None else self._recipe.delay(random)
        return Round(np.asarray(contexts, np.float64), expected, np.asarray(rewards, np.float64), available, delay)

    def _generator(self, *numbers: int) -> Generator:
        return np.random.default_rng((*self._entropy, *numbers))

    def _calibrate(self) -> tuple[float, float]:
        """Mean of the truth, and its standard deviation among the arms of a round, which is what a choice can gain."""
        random, values = self._generator(0, 1), []
        for index in range(CALIBRATION):
            progress = index / CALIBRATION
            latents = self._latents(random, int(progress * self._recipe.rounds))
            values.append(self._truth(np.nan_to_num(latents, nan=0.0), progress))
        return float(np.mean(values)), float(np.sqrt(np.mean(np.var(values, axis=1))))


def make_world(name: str, seed: int, rounds: int | None = None) -> World:
    """The world of that name and seed; `rounds` makes it shorter, never longer."""
    return World(name, seed, rounds)


def rounds_of(name: str, rounds: int | None = None) -> int:
    """How many rounds a world has, if at most so many are wanted."""
    return _RECIPES[name].rounds if rounds is None else min(rounds, _RECIPES[name].rounds)


def split_of(name: str) -> str:
    """Whether a world is "open", or "held-out" of every choice: within pairs, alternating which comes first."""
    index = WORLDS.index(name)
    return "held-out" if (index + index // 2) % 2 else "open"


# latents: what the truth depends on


def normal(arms: int, dim: int):
    return lambda made: lambda random, t: random.normal(size=(arms, dim))


def sphere(arms: int, dim: int):
    def draw(random, t):
        points = random.normal(size=(arms, dim))
        return points * np.sqrt(dim) / np.linalg.norm(points, axis=1, keepdims=True)

    return lambda made: draw


def bits(arms: int, dim: int):
    return lambda made: lambda random, t: random.integers(0, 2, size=(arms, dim)).astype(np.float64)


def cauchy(arms: int, dim: int):
    """Logarithms of the size of Cauchy variables, with their sign; the view undoes it."""
    return lambda made: lambda random, t: 0.7 * np.arcsinh(random.standard_cauchy(size=(arms, dim)))


def factors(arms: int, dim: int, count: int):
    """Correlated: `dim` features of a few common factors and a little of their own."""

    def make(made):
        loadings = made.normal(size=(count, dim)) / np.sqrt(count)
        return lambda random, t: random.normal(size=(arms, count)) @ loadings + 0.1 * random.normal(size=(arms, dim))

    return make


def categories(arms: int, levels: tuple[int, ...], numbers: int = 0):
    """One-hot codes of categories, of which some are common and some rare, then numbers."""

    def make(made):
        odds = [made.dirichlet(np.full(level, 2.0)) for level in levels]

        def draw(random, t):
            codes = [np.eye(len(p))[random.choice(len(p), size=arms, p=p)] for p in odds]
            return np.hstack([*codes, random.normal(size=(arms, numbers))])

        return draw

    return make


def shared(arms: int, dim: int):
    """One context for all arms."""
    return lambda made: lambda random, t: np.tile(random.normal(size=dim), (arms, 1))


def pairs_of_rows(arms: int, dim: int):
    """Each row occurs twice."""
    return lambda made: lambda random, t: np.repeat(random.normal(size=(arms // 2, dim)), 2, axis=0)


def catalogue(arms: int, dim: int):
    """A user who differs from round to round, and items that stay as they are."""

    def make(made):
        items = made.normal(size=(arms, dim))
        return lambda random, t: np.hstack([np.tile(random.normal(size=dim), (arms, 1)), items])

    return make


def with_missing(latents, share: float):
    def make(made):
        inner = latents(made)

        def draw(random, t):
            values = inner(random, t)
            return np.where(random.random(values.shape) < share, np.nan, values)

        return draw

    return make


def ages(arms: int, dim: int):
    """How many days ago an item was published, then ordinary features."""
    return lambda made: (
        lambda random, t: np.hstack([random.exponential(3.0, (arms, 1)), random.normal(size=(arms, dim))])
    )


# truths: the expected reward, not yet standardised


def linear(made, dim):
    weights = made.normal(size=dim)
    return lambda z, progress: z @ weights


def quadratic(made, dim):
    """A form of low rank, as expected rewards that depend on pairs of features."""
    left, right, weights = made.normal(size=(3, dim)), made.normal(size=(3, dim)), made.normal(size=dim)
    return lambda z, progress: ((z @ left.T) * (z @ right.T)).sum(axis=1) / np.sqrt(3 * dim) + 0.5 * z @ weights


def squared_projection(made, dim):
    direction = _unit(made, dim)
    return lambda z, progress: (z @ direction) ** 2


def exclusive_or(made, dim):
    """Of the signs of two features; the others do not matter."""
    first, second = made.choice(dim, size=2, replace=False)
    return lambda z, progress: np.tanh(3 * z[:, first]) * np.tanh(3 * z[:, second])


def exclusive_or_of_bits(made, dim):
    (first, second), weights = made.choice(dim, size=2, replace=False), made.normal(size=dim)
    return lambda z, progress: 1.0 * (z[:, first] != z[:, second]) + 0.15 * z @ weights


def cosine(made, dim):
    """The paper's h3 with a longer wave."""
    direction = _unit(made, dim)
    return lambda z, progress: np.cos(2 * z @ direction)


def waves(made, dim):
    """A sine of each feature, of its own length and phase."""
    length, phase, weights = made.uniform(0.5, 2.0, dim), made.uniform(0, 2 * np.pi, dim), made.normal(size=dim)
    return lambda z, progress: np.sin(length * z + phase) @ weights


def hills(made, dim):
    """A few round hills and valleys in three directions of all."""
    directions = np.linalg.qr(made.normal(size=(dim, 3)))[0]
    centres, heights = made.normal(size=(6, 3)), made.choice([-1.0, 1.0], 6) * made.uniform(0.5, 1.5, 6)

    def value(z, progress):
        distances = (((z @ directions)[:, None, :] - centres) ** 2).sum(axis=2)
        return np.exp(-distances) @ heights

    return value


def network(made, dim):
    """A random network: 12 folds, each of two rectified units, of which a line explains about half."""
    weights, folds = made.normal(size=(dim, 12)) / np.sqrt(dim), 0.7 * made.normal(size=12)
    out = made.choice([-1.0, 1.0], 12) * made.uniform(0.5, 1.5, 12)
    return lambda z, progress: np.abs(z @ weights - folds) @ out


def tree(made, dim):
    """One tree of depth 3: eight leaves."""
    return _trees(made, dim, count=1, depth=3)


def forest(made, dim):
    """Twelve trees of depth 2."""
    return _trees(made, dim, count=12, depth=2)


def sparse(made, dim):
    """Three features of all, curved."""
    first, second, third = made.choice(dim, size=3, replace=False)
    return lambda z, progress: z[:, first] + np.abs(z[:, second]) + np.sin(2 * z[:, third])


def slopes(levels: int):
    """A slope for each category, given first and one-hot, and a curve that all of them share."""

    def make(made, dim):
        weights, direction = made.normal(size=(levels, dim - levels)), _unit(made, dim - levels)
        return lambda z, progress: (
            ((z[:, :levels] @ weights) * z[:, levels:]).sum(axis=1) + 2 * np.cos(2 * z[:, levels:] @ direction)
        )

    return make


def per_arm(arms: int, truth):
    """A truth of its own for each arm."""

    def make(made, dim):
        each = [truth(made, dim) for _ in range(arms)]
        return lambda z, progress: np.array([f(z[k : k + 1], progress)[0] for k, f in enumerate(each)])

    return make


def taste(made, dim):
    """What a user likes about an item: a bilinear form, and what everybody likes."""
    half = dim // 2
    form, weights = made.normal(size=(half, half)), made.normal(size=half)
    return lambda z, progress: ((z[:, :half] @ form) * z[:, half:]).sum(axis=1) / np.sqrt(half) + z[:, half:] @ weights


def freshness(made, dim):
    """New items are better, and the other features matter."""
    rest = network(made, dim - 1)
    return lambda z, progress: 6 * np.exp(-z[:, 0] / 2) + rest(z[:, 1:], progress)


def slowly_to_another(truth):
    def make(made, dim):
        before, after = truth(made, dim), truth(made, dim)
        return lambda z, progress: (
            np.cos(progress * np.pi / 2) * before(z, progress) + np.sin(progress * np.pi / 2) * after(z, progress)
        )

    return make


def suddenly_to_another(truth):
    def make(made, dim):
        before, after, moment = truth(made, dim), truth(made, dim), made.uniform(0.3, 0.6)
        return lambda z, progress: (before if progress < moment else after)(z, progress)

    return make


# views: what players see of the latents


def units(low: float, high: float):
    """Each feature in units of its own, from `low` to `high`, shuffled."""

    def make(made, dim):
        scales = made.permutation(np.geomspace(low, high, dim))
        return lambda z, t: z * scales

    return make


def shifted(offset: float):
    return lambda made, dim: lambda z, t: z + offset


def scaled_and_shifted(low: float, high: float, offset: float):
    def make(made, dim):
        scales = made.permutation(np.geomspace(low, high, dim))
        offsets = made.normal(size=dim) * offset
        return lambda z, t: z * scales + offsets

    return make


def times(factor: float):
    return lambda made, dim: lambda z, t: z * factor


def lognormal(made, dim):
    return lambda z, t: np.exp(1.5 * z)


def raw_cauchy(made, dim):
    return lambda z, t: np.sinh(z / 0.7)


def with_duplicates(made, dim):
    """Every feature twice, in two units, three constants, and a sum of the others."""
    weights = made.normal(size=dim)
    constants = np.array([0.0, 1.0, 37.0])
    return lambda z, t: np.hstack([z, 2.54 * z, np.tile(constants, (len(z), 1)), (z @ weights)[:, None]])


def missing_as(value: float, centre: float, scale: float):
    return lambda made, dim: lambda z, t: np.where(np.isnan(z), value, centre + scale * z)


def blocks(made, dim):
    """The context that all arms share, in the arm's block; zeros in the others."""
    return lambda z, t: np.einsum("ka,kd->kad", np.eye(len(z)), z).reshape(len(z), -1)


def beside_arm_code(made, dim):
    """The context that all arms share, then the arm, one-hot."""
    return lambda z, t: np.hstack([z, np.eye(len(z))])


def timestamps(made, dim):
    """Seconds since 1970 of the request and of the item's publication, a request every ten minutes."""
    day = 86_400.0

    def see(z, t):
        now = 1.7e9 + 600.0 * t
        return np.hstack([np.full((len(z), 1), now), now - day * z[:, :1], z[:, 1:]])

    return see


# payoffs: rewards from the standardised truth


def gaussian(signal_to_noise: float, unit: float = 1.0, offset: float = 0.0):
    def draw(random, expected, t):
        return expected + unit / signal_to_noise * random.normal(size=len(expected))

    return lambda made, rounds: Payoff(lambda random, truth: offset + unit * truth, draw)


def clicks(rate: float, slope: float):
    """0 or 1: logistic, with about that rate for an average arm."""
    level = np.log(rate / (1 - rate))

    def expect(random, truth):
        return 1 / (1 + np.exp(-(level + slope * truth)))

    return lambda made, rounds: Payoff(expect, lambda random, expected, t: random.random(len(expected)) < expected)


def revenue(rate: float, amount: float):
    """Mostly zero; else a lognormal amount."""
    spread = 0.8
    level = np.log(rate / (1 - rate))

    def expect(random, truth):
        return amount / (1 + np.exp(-(level + truth)))

    def draw(random, expected, t):
        bought = random.random(len(expected)) < expected / amount
        return bought * amount * np.exp(spread * random.normal(size=len(expected)) - spread**2 / 2)

    return lambda made, rounds: Payoff(expect, draw)


def counts(level: float, slope: float):
    def expect(random, truth):
        return level * np.exp(slope * np.clip(truth, -3, 3))

    return lambda made, rounds: Payoff(expect, lambda random, expected, t: random.poisson(expected))


def outliers(payoff, share: float, size: float):
    """One reward in a few hundred is off by `size`, up or down."""

    def make(made, rounds):
        inner = payoff(made, rounds)

        def draw(random, expected, t):
            rewards = inner.draw(random, expected, t)
            signs = random.choice([-1.0, 1.0], len(rewards))
            return rewards + size * signs * (random.random(len(rewards)) < share)

        return Payoff(inner.expect, draw)

    return make


def one_of_a_million(payoff):
    """Once, at a random moment, whatever is chosen brings 1 000 000, which says nothing about the arm."""

    def make(made, rounds):
        inner, moment = payoff(made, rounds), made.integers(rounds // 10, rounds - rounds // 10)

        def draw(random, expected, t):
            rewards = inner.draw(random, expected, t)
            return np.full_like(rewards, 1e6) if t == moment else rewards

        return Payoff(inner.expect, draw)

    return make


def no_signal(made, rounds):
    """Arms differ, but contexts do not say which is better: nobody can do better than uniform."""
    return Payoff(lambda random, truth: random.normal(size=len(truth)), lambda random, expected, t: expected)


def no_signal_clicks(made, rounds):
    return Payoff(
        lambda random, truth: random.beta(1.0, 4.0, size=len(truth)),
        lambda random, expected, t: random.random(len(expected)) < expected,
    )


# arms that are not always there, and rewards that are late


def come_and_go(made, arms):
    """Each item is there for 200 to 600 rounds; the first two always are."""
    start, stay = made.integers(-400, ROUNDS, arms), made.integers(200, 600, arms)

    def available(random, t):
        there = (start <= t) & (t < start + stay)
        there[:2] = True
        return there

    return available


def half_of_them(made, arms):
    def available(random, t):
        there = random.random(arms) < 0.5
        there[random.integers(arms)] = True
        return there

    return available


def after(rounds: int):
    return lambda random: rounds


def after_any_time(mean: float, longest: int):
    """Most rewards soon, some very late, in any order."""
    return lambda random: min(int(random.exponential(mean)), longest)


def _unit(made: Generator, dim: int) -> Array:
    direction = made.normal(size=dim)
    return direction / np.linalg.norm(direction)


def _trees(made: Generator, dim: int, *, count: int, depth: int) -> Callable[[Array, float], Array]:
    """Trees whose nodes of a level share one question, which is all that a vectorised tree needs."""
    features = np.array([made.choice(dim, size=depth, replace=False) for _ in range(count)])
    thresholds, leaves = 0.5 * made.normal(size=(count, depth)), made.normal(size=(count, 2**depth))

    def value(z: Array, progress: float) -> Array:
        answers = z[:, features] > thresholds
        leaf = answers @ (2 ** np.arange(depth))
        return leaves[np.arange(count), leaf].sum(axis=1)

    return value


_RECIPES: dict[str, Recipe] = {
    "linear": Recipe("linear", normal(10, 20), linear, gaussian(1)),
    "linear-noisy": Recipe("linear", normal(5, 10), linear, gaussian(0.3)),
    #
    "quadratic": Recipe("quadratic", normal(10, 10), quadratic, gaussian(1.5)),
    "squared-projection": Recipe("quadratic", sphere(4, 16), squared_projection, gaussian(3)),
    #
    "xor": Recipe("exclusive-or", normal(6, 8), exclusive_or, gaussian(1.5)),
    "xor-bits": Recipe("exclusive-or", bits(8, 12), exclusive_or_of_bits, gaussian(1)),
    #
    "cosine": Recipe("smooth", sphere(4, 10), cosine, gaussian(5)),
    "waves": Recipe("smooth", normal(8, 8), waves, gaussian(2)),
    #
    "tree": Recipe("steps", normal(8, 10), tree, gaussian(2)),
    "forest": Recipe("steps", normal(10, 15), forest, gaussian(1.5)),
    #
    "scales-linear": Recipe("scales of features", normal(10, 12), linear, gaussian(1), units(0.01, 30)),
    "scales-curved": Recipe("scales of features", normal(10, 10), hills, gaussian(2), units(0.01, 30)),
    #
    "offset-1000": Recipe("offsets", normal(6, 8), network, gaussian(2), shifted(1000.0)),
    "timestamps": Recipe("offsets", ages(8, 4), freshness, gaussian(2), timestamps),
    #
    "lognormal": Recipe("heavy tails", normal(8, 8), network, gaussian(2), lognormal),
    "cauchy": Recipe("heavy tails", cauchy(8, 6), waves, gaussian(2), raw_cauchy),
    #
    "one-hot": Recipe("categories", categories(8, (8, 6, 5)), quadratic, gaussian(1.5)),
    "categories-and-numbers": Recipe("categories", categories(6, (5,), numbers=5), slopes(5), gaussian(2)),
    #
    "clicks-linear": Recipe("binary rewards", normal(6, 10), linear, clicks(0.3, 1.5)),
    "clicks-curved": Recipe("binary rewards", normal(6, 8), network, clicks(0.4, 2.0)),
    #
    "rare-linear": Recipe("rare rewards", normal(8, 8), linear, clicks(0.02, 1.2)),
    "rare-curved": Recipe("rare rewards", normal(8, 6), hills, clicks(0.02, 2.0)),
    #
    "thousands": Recipe("units of rewards", normal(8, 8), network, gaussian(2, unit=3000.0, offset=20_000.0)),
    "hundredths": Recipe("units of rewards", normal(8, 8), quadratic, gaussian(2, unit=0.01)),
    #
    "outliers": Recipe("outliers", normal(8, 10), linear, outliers(gaussian(1), 0.005, 100.0)),
    "one-million": Recipe("outliers", normal(8, 8), waves, one_of_a_million(gaussian(2))),
    #
    "forest-in-thousandths": Recipe(
        "units of features", normal(10, 15), forest, gaussian(1.5), times(1e-3), stream="forest"
    ),
    "waves-in-thousands": Recipe("units of features", normal(8, 8), waves, gaussian(2), times(1e3), stream="waves"),
    #
    "fifty-arms": Recipe("many arms", normal(50, 10), network, gaussian(1)),
    "two-thousand-arms": Recipe("many arms", normal(2000, 8), waves, gaussian(2), rounds=400),
    #
    "hundred-features": Recipe("many features", normal(5, 100), linear, gaussian(2)),
    "sparse": Recipe("many features", normal(8, 60), sparse, gaussian(2)),
    #
    "correlated": Recipe("dependent features", factors(8, 20, 4), network, gaussian(2)),
    "duplicates": Recipe("dependent features", pairs_of_rows(10, 6), network, gaussian(2), with_duplicates),
    #
    "missing-as-minus-one": Recipe(
        "missing values", with_missing(normal(8, 8), 0.2), network, gaussian(2), missing_as(-1.0, 40.0, 10.0)
    ),
    "missing-as-zero": Recipe(
        "missing values", with_missing(normal(8, 8), 0.3), waves, gaussian(3), missing_as(0.0, 5.0, 1.0)
    ),
    #
    "arm-blocks": Recipe("shared contexts", shared(6, 6), per_arm(6, linear), gaussian(1), blocks),
    "arm-codes": Recipe("shared contexts", shared(5, 6), per_arm(5, network), gaussian(2), beside_arm_code),
    #
    "slow-drift": Recipe("drift", normal(8, 8), slowly_to_another(linear), gaussian(2)),
    "sudden-drift": Recipe("drift", normal(6, 6), suddenly_to_another(network), gaussian(2)),
    #
    "late-by-50": Recipe("delays", normal(8, 10), network, gaussian(2), delay=after(50)),
    "late-at-random": Recipe("delays", normal(8, 8), linear, clicks(0.2, 1.5), delay=after_any_time(80, 500)),
    #
    "arms-come-and-go": Recipe(
        "arms not always available", catalogue(40, 4), taste, gaussian(1.5), available=come_and_go
    ),
    "half-available": Recipe("arms not always available", normal(12, 10), hills, gaussian(2), available=half_of_them),
    #
    "no-signal": Recipe("no signal", normal(5, 10), linear, no_signal),
    "no-signal-clicks": Recipe(
        "no signal", normal(4, 8), linear, no_signal_clicks, scaled_and_shifted(0.1, 10.0, 20.0)
    ),
    #
    "revenue": Recipe("skewed rewards", normal(8, 8), linear, revenue(0.1, 40.0)),
    "counts": Recipe("skewed rewards", normal(8, 8), network, counts(3.0, 0.5)),
}
WORLDS: tuple[str, ...] = tuple(_RECIPES)


def _describe() -> None:
    """A line per world: its size, the oracle's gain, and signal to noise among the arms of a round."""
    print(f"{'':24}{'split':>9}{'kind':>27}{'d':>5}{'K':>6}{'reward':>11}{'oracle gains':>14}{'signal/noise':>14}")
    for name in WORLDS:
        world = make_world(name, 0)
        rounds = [world.draw(t) for t in range(0, world.rounds, 4)]
        gain = np.mean([np.nanmean(each.regrets()) for each in rounds])
        signal = np.sqrt(np.mean([np.var(each.expected) for each in rounds]))
        noise = np.sqrt(np.mean([np.mean((each.rewards - each.expected) ** 2) for each in rounds]))
        reward = np.mean([each.rewards.mean() for each in rounds])
        ratio = f"{signal / noise:14.2f}" if noise else f"{'hidden':>14}"
        size = f"{world.dim:>5}{world.arms:>6}"
        print(f"{name:24}{world.split:>9}{world.kind:>27}{size}{reward:11.4g}{gain:14.4g}{ratio}")


if __name__ == "__main__":
    _describe()

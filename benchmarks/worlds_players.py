"""Who plays the worlds: uniform, LinUCB, Vowpal Wabbit, and any algorithm of the library with any settings.

A player has `select(contexts, available) -> (arm, ticket)`, `observe(ticket, reward)` and `troubles()`. It knows the
number of features, and nothing else about the world. `make_player(text, dim, seed)` reads

    uniform                                 an available arm at random
    lin-ucb                                 LinUCB on raw contexts and a constant, exploration 1
    vw, vw-quadratic                        Vowpal Wabbit's SquareCB, linear or with products of all pairs of features
    default                                 OnlineBandit(build(dim=d))
    neural-ucb:width=32,steps=100           OnlineBandit(build("neural-ucb", dim=d, width=32, steps=100))
    neural-ucb:normalize=true,schedule=50   settings of OnlineBandit are passed to it

Vowpal Wabbit is `pip install vowpalwabbit`. Its one setting for all worlds is the best of five by mean share on the
open worlds with a seed that is not scored: first gamma_scale 10, 100 or 1000 at its own step size of 0.5 (before some
truths changed: worlds_suite.py), then step sizes 0.1, 0.5 or 2 at 1000. LinUCB's setting was not chosen.
"""

import inspect
import json
from typing import Any, NamedTuple, Protocol

import numpy as np

import neuralucb

__all__ = ["PEERS", "Player", "make_player", "name_of"]

PEERS = ("lin-ucb", "vw", "vw-quadratic")
"""Those whom a new player should beat."""

Array = np.ndarray[Any, Any]


class Player(Protocol):
    def select(self, contexts: Array, available: Array | None) -> tuple[int, Any]: ...
    def observe(self, ticket: Any, reward: float) -> None: ...
    def troubles(self) -> dict[str, Any]: ...


def make_player(text: str, dim: int, seed: int) -> Player:
    """The player of that text; a label before "=" is only for tables, as in "wide=neural-ucb:width=300"."""
    name, _, settings = _without_label(text).partition(":")
    values = dict(_read_setting(each) for each in settings.split(",") if each)
    if name in ("uniform", "vw", "vw-quadratic") and values:
        raise ValueError(f"{name} has no settings, got {settings!r}.")
    if name == "uniform":
        return Uniform(seed)
    if name in ("vw", "vw-quadratic"):
        return VowpalWabbit(seed, quadratic=name == "vw-quadratic")
    if name == "lin-ucb":
        return Library(name, dim, seed, {"exploration": 1.0, **values}, constant=True)
    return Library(None if name == "default" else name, dim, seed, values)


def name_of(text: str) -> str:
    """What tables call a player: its label, or else the text itself."""
    return text if _without_label(text) == text else text.partition("=")[0]


class Uniform:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng((seed, 1))

    def select(self, contexts: Array, available: Array | None) -> tuple[int, Any]:
        choices = np.arange(len(contexts)) if available is None else np.flatnonzero(available)
        return int(self.random.choice(choices)), None

    def observe(self, ticket: Any, reward: float) -> None:
        pass

    def troubles(self) -> dict[str, Any]:
        return {}


class Library:
    """`OnlineBandit` as a user would use it. LinUCB has no intercept of its own, so it is given a constant."""

    def __init__(
        self, name: str | None, dim: int, seed: int, settings: dict[str, Any], *, constant: bool = False
    ) -> None:
        online = inspect.signature(neuralucb.OnlineBandit).parameters
        mine = {key: value for key, value in settings.items() if key in online}
        others = {key: value for key, value in settings.items() if key not in online}
        named = () if name is None else (name,)
        policy = neuralucb.build(*named, dim=dim + constant, **others)
        self.constant = constant
        self.unread = 0
        self.bandit = neuralucb.OnlineBandit(policy, **{"seed": seed, **mine})

    def select(self, contexts: Array, available: Array | None) -> tuple[int, Any]:
        if self.constant:
            contexts = np.hstack([contexts, np.ones((len(contexts), 1))])
        decision = self.bandit.select(contexts, available=available)
        return int(decision.arm), decision.id

    def observe(self, ticket: Any, reward: float) -> None:
        try:
            self.bandit.observe(ticket, reward)
        except neuralucb.InputError:
            self.unread += 1

    def troubles(self) -> dict[str, Any]:
        health = self.bandit.health()
        return {
            "learned": health.learned,
            "diverged": health.diverged,
            "refused": health.refused + self.unread,
            "failure": health.failure,
        }


class Ticket(NamedTuple):
    """A decision that waits for its reward."""

    lines: list[str]
    chosen: int
    probability: float


class VowpalWabbit:
    """SquareCB (Foster & Rakhlin 2020) on the contexts as they are, which Vowpal Wabbit normalises itself.

    SquareCB wants costs between 0 and 1. As a careful user would, costs are rewards' distance from their 95 % quantile
    so far over the range from the 5 % quantile (or over the whole range, where these are equal), clipped.
    """

    OPTIONS = "--cb_explore_adf --squarecb --gamma_scale 1000 --learning_rate 2 --quiet"

    def __init__(self, seed: int, *, quadratic: bool, options: str = OPTIONS) -> None:
        from vowpalwabbit import Workspace

        self.random = np.random.default_rng((seed, 2))
        self.workspace = Workspace(f"{options} --random_seed {seed + 1}" + (" --interactions aa" if quadratic else ""))
        self.rewards: list[float] = []

    def select(self, contexts: Array, available: Array | None) -> tuple[int, Any]:
        choices = np.arange(len(contexts)) if available is None else np.flatnonzero(available)
        lines = [_features(row) for row in contexts[choices].tolist()]
        probabilities = np.asarray(self.workspace.predict(lines), np.float64)
        chosen = int(self.random.choice(len(choices), p=probabilities / probabilities.sum()))
        return int(choices[chosen]), Ticket(lines, chosen, float(probabilities[chosen]))

    def observe(self, ticket: Any, reward: float) -> None:
        self.rewards.append(reward)
        label = f"0:{self._cost(reward):.6f}:{ticket.probability:.6f} "
        lines = [label + line if index == ticket.chosen else line for index, line in enumerate(ticket.lines)]
        self.workspace.learn(lines)

    def troubles(self) -> dict[str, Any]:
        return {}

    def _cost(self, reward: float) -> float:
        low, high = np.quantile(self.rewards, [0.05, 0.95])
        if low == high:
            low, high = min(self.rewards), max(self.rewards)
        return float(np.clip((high - reward) / (high - low or 1.0), -1.0, 2.0))


def _features(row: list[float]) -> str:
    return "|a " + " ".join([f"{index}:{value:.9g}" for index, value in enumerate(row) if value])


def _without_label(text: str) -> str:
    """The text after a label; an "=" behind the ":" belongs to a setting."""
    label, equals, rest = text.partition("=")
    return rest if equals and ":" not in label else text


def _read_setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"a setting is NAME=VALUE, got {text!r}.")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value

"""Choosing for a batch of requests with one model: those with similarly many arms are scored together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neuralucb.online.compiled import Programs, power_of_two
from neuralucb.online.ledger import column
from neuralucb.policy import Belief
from neuralucb.runtime.decimals import decimal, decimals
from neuralucb.service.postgres.schema import is_storable
from neuralucb.service.store import Refusal, Request

__all__ = ["Chosen", "choose", "unstorable"]


class Chosen(NamedTuple):
    """What a request is answered, before it is written; per-arm numbers are float64 of length K, as decimals."""

    number: int
    """of the decision, with which its random key is made"""
    position: int
    """of the arm to use"""
    preferred: int
    greedy: int
    exploration: float
    propensities: np.ndarray
    score: np.ndarray
    mean: np.ndarray
    width: np.ndarray


def choose(
    programs: Programs, belief: Belief, requests: Sequence[Request], numbers: Sequence[int]
) -> list[Chosen | Refusal]:
    """A choice for each request, or why there is none.

    Requests are padded to a power of two of arms, so that a few programs serve all; those with the same one, and
    consecutive numbers, are scored in one call.
    """
    sizes = [power_of_two(len(request.arms)) for request in requests]
    ordered = sorted(range(len(requests)), key=sizes.__getitem__)
    calls: list[list[tuple[int, int]]] = []
    for index, number in zip(ordered, numbers, strict=True):
        last = calls[-1][-1] if calls else None
        if last is not None and sizes[last[0]] == sizes[index] and last[1] == number - 1:
            calls[-1].append((index, number))
        else:
            calls.append([(index, number)])
    answers: dict[int, Chosen | Refusal] = {}
    for call in calls:
        (first, number), together = call[0], [requests[index] for index, _ in call]
        rows = _score(programs, belief, together, number, sizes[first])
        for row, (index, own) in zip(rows, call, strict=True):
            answers[index] = _read(row[None], requests[index], own)
    return [answers[index] for index in range(len(requests))]


def unstorable(request: Request) -> Refusal | None:
    """Why PostgreSQL cannot hold a request, if it cannot."""
    for name, values in (("event_id", [request.event_id]), ("user", [request.user or ""]), ("arm", request.arms)):
        for value in values:
            if not is_storable(value):
                return Refusal("invalid", f"{name} must be text without NUL and lone surrogates, got {value!r:.80}.")
    return None


def _score(programs: Programs, belief: Belief, requests: list[Request], first: int, capacity: int) -> np.ndarray:
    contexts = np.zeros((len(requests), capacity, requests[0].contexts.shape[1]), np.float32)
    allowed = np.zeros((len(requests), capacity), bool)
    for row, request in enumerate(requests):
        contexts[row, : len(request.arms)] = request.contexts
        allowed[row, : len(request.arms)] = request.allowed
    return programs.choose_many(first, belief, contexts, allowed, capacity=capacity).rows


def _read(row: np.ndarray, request: Request, number: int) -> Chosen | Refusal:
    """One choice, from a row [1, 4C + 4] of which the first K arms are the request's."""
    arms = len(request.arms)
    mean, width, score = (decimals(column(row, name)[0, :arms]) for name in ("mean", "width", "score"))
    shares = decimals(column(row, "propensities")[0, :arms], by_value=True)
    allowed = request.allowed
    for name, values in (("mean", mean), ("width", width), ("score", score)):
        if not np.isfinite(values[allowed]).all():
            largest = float(np.abs(request.contexts).max(initial=0.0))
            return Refusal(
                "invalid",
                f"features must be small enough to be scored, got values up to {largest:.3g}: the {name} of an arm "
                "would not be finite; check their units.",
            )
    for values in (mean, width, score):  # of arms that were not allowed: in no answer may there be NaN
        values[~np.isfinite(values)] = values[allowed].min()
    shares[~allowed] = 0.0
    chosen, greedy, exploration = (decimal(column(row, name).item()) for name in ("chosen", "greedy", "exploration"))
    position = int(chosen)
    if request.imposed is not None:
        position = request.imposed
        shares = np.zeros(arms)
        shares[position] = 1.0
    preferred = int(np.argmax(np.where(allowed, score, -np.inf)))
    exploration = exploration if np.isfinite(exploration) else 0.0
    return Chosen(number, position, preferred, int(greedy), exploration, shares, score, mean, width)

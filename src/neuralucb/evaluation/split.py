"""One log, split in two: a policy is trained on the first share and valued on the rest."""

from collections.abc import Sequence

import jax
from jax import random

from neuralucb.evaluation.estimators import FROZEN, METHODS
from neuralucb.evaluation.off_policy import evaluate
from neuralucb.evaluation.records import Evaluation
from neuralucb.evaluation.replay import replay, with_replay
from neuralucb.logs.formats import Log
from neuralucb.logs.warm_start import learn_from
from neuralucb.policy import Belief, Policy
from neuralucb.runtime.errors import InputError, UnsoundError
from neuralucb.schedules import Schedule, read_schedule

__all__ = ["SCHEDULE", "evaluate_after_training"]

SCHEDULE = "10:100,100:1000,1000:10000,10000"
"""When a policy learns in replay: often at first, and about 30 times in 30 000 accepted decisions."""


def evaluate_after_training(
    key: jax.Array,
    policy: Policy,
    log: Log,
    *,
    name: str = "policy",
    train: float = 0.5,
    methods: Sequence[str] | None = None,
    level: float = 0.95,
    switch: float = 10.0,
    schedule: str | Schedule = SCHEDULE,
    skip_deterministic: bool = False,
) -> Evaluation:
    """Train a policy on the first share of a log, and estimate its reward per decision from the rest.

    Replay does not split the log: there the policy starts from nothing and learns along all of it.

    Args:
        key: Randomness of training and of replay.
        policy: The policy to train and value.
        log: The log of another policy.
        name: What to call the policy in tables.
        train: The share of the log to train on; 0 values a policy that has learned nothing.
        methods: Names from METHODS. None means all of them, but where replay is impossible, a note says why.
        level: The level of the intervals.
        switch: τ, the weight above which the method `switch` relies on the model.
        schedule: When the policy learns in replay, in accepted decisions, such as "100"; see `read_schedule`.
        skip_deterministic: Leave deterministic decisions out of methods that divide by propensities, instead of
            refusing the log.

    Returns:
        The estimates by every method, what the second part of the log earned, and a diagnosis of the overlap.

    Raises:
        InputError: A method is unknown, a number is out of range, the schedule cannot be read, a decision is
            deterministic, or the log has too few decisions to train on or to value with.
        UnsoundError: Training diverged, there or in replay, or a score of the policy is not finite: an untrained policy
            must not be valued under a trained one's name.

    Example:
        >>> from neuralucb import build
        >>> from neuralucb.logs import open_log
        >>> from neuralucb.logs.batches import shape_of
        >>> log = open_log(Path("log.parquet"))
        >>> policy = build("lin-ucb", **shape_of(log))
        >>> made = evaluate_after_training(jax.random.key(0), policy, log, train=0.5, methods=["ips", "snips"])
        >>> [each.method for each in made.estimates]
        ['ips', 'snips']
    """
    if not 0 <= train < 1:
        raise InputError(f"train must be at least 0 and below 1, got {train}: the rest of the log is for valuing.")
    wanted = tuple(METHODS) if methods is None else tuple(methods)
    for method in wanted:
        if method not in METHODS:
            raise InputError(f"method {method!r} is not known; known: {', '.join(METHODS)}.")
    phases = read_schedule(schedule)
    key_learn, key_replay = random.split(key)
    begin = int(log.decisions * train)
    belief = _trained(key_learn, policy, log, begin, name) if begin else policy.init(key_learn)
    made = evaluate(
        policy,
        belief,
        log,
        name=name,
        methods=tuple(method for method in wanted if method in FROZEN),
        level=level,
        switch=switch,
        begin=begin,
        skip_deterministic=skip_deterministic,
    )
    if "replay" not in wanted:
        return made
    try:
        replayed = replay(key_replay, policy, log, schedule=phases, level=level, skip_deterministic=skip_deterministic)
    except InputError as problem:
        if methods is not None or isinstance(problem, UnsoundError):
            raise
        return made._replace(notes=(*made.notes, f"no replay: {str(problem).rstrip('.')}"))
    return with_replay(made, replayed)


def _trained(key: jax.Array, policy: Policy, log: Log, end: int, name: str) -> Belief:
    """What the policy has learned from the decisions before `end`."""
    learned = learn_from(key, policy, log, end=end)
    if learned.info.diverged:
        raise UnsoundError(
            f"{name} diverged while it learned from the first {end} decisions of {log.path}, so that it has no value; "
            "try a smaller step_size, or an algorithm that learns the units of contexts and rewards, such "
            "as neural-mix."
        )
    return learned.belief

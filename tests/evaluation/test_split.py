"""One log, split: trained on the first share, valued on the rest."""

import jax
import numpy as np
import pytest

from neuralucb import InputError, UnsoundError, build
from neuralucb.evaluation import FROZEN, METHODS, evaluate, evaluate_after_training, replay
from neuralucb.logs.warm_start import learn_from
from tests.evaluation.worlds import DIM, in_memory, world


def test_it_learns_from_the_first_share_values_on_the_rest_and_replays_all_of_it(key):
    log, policy, schedule = in_memory(world(800, 0)), build("lin-ucb", dim=DIM), "50"
    made = evaluate_after_training(key, policy, log, name="mine", train=0.25, schedule=schedule)
    key_learn, key_replay = jax.random.split(key)
    belief = learn_from(key_learn, policy, log, end=200).belief
    by_hand = evaluate(policy, belief, log, name="mine", begin=200)
    along = replay(key_replay, policy, log, schedule=schedule)
    assert made.estimates == (*by_hand.estimates, along.estimate)
    assert made[:5] == by_hand[:5]
    assert f"accepted {along.accepted} of 800 decisions" in made.notes[0]


def test_without_training_the_policy_is_valued_as_it_starts(key):
    log, policy = in_memory(world(400, 0)), build("lin-ucb", dim=DIM)
    made = evaluate_after_training(key, policy, log, train=0, methods=FROZEN)
    start = policy.init(jax.random.split(key)[0])
    assert made == evaluate(policy, start, log)


def test_replay_that_is_impossible_is_a_note_unless_it_was_named(key):
    chunk = world(400, 0)._replace(probabilities=None)
    chunk.propensity[0] = 1e-6  # replay accepts every decision with that probability
    log, policy = in_memory(chunk), build("uniform", dim=DIM)
    made = evaluate_after_training(key, policy, log)
    assert tuple(one.method for one in made.estimates) == FROZEN
    assert made.notes[0].startswith("no replay: memory: replay accepted")
    with pytest.raises(ValueError, match="replay accepted"):
        evaluate_after_training(key, policy, log, methods=tuple(METHODS))


PLAIN = {"width": 8, "steps": 20, "units": "given", "retries": 0, "optimizer": "plain", "decay": "none"}


def test_a_policy_whose_training_diverged_has_no_value(key):
    log = in_memory(world(400, 0))
    with pytest.raises(UnsoundError, match="mine diverged while it learned from the first 200 decisions of memory"):
        evaluate_after_training(key, build("neural-ucb", dim=DIM, step_size=1e8, **PLAIN), log, name="mine")
    sound = build("neural-ucb", dim=DIM, step_size=0.01, **PLAIN)  # the control
    assert evaluate_after_training(key, sound, log, methods=("ips",)).estimates[0].value


def test_a_policy_that_diverges_in_replay_is_refused_even_if_replay_was_not_named(key):
    log = in_memory(world(400, 0))
    diverges = build("neural-ucb", dim=DIM, step_size=1e8, **PLAIN)
    with pytest.raises(UnsoundError, match="replay: after .* accepted decisions training diverged"):
        evaluate_after_training(key, diverges, log, train=0, schedule="20")
    with pytest.raises(UnsoundError, match="replay: after 20 accepted"):
        replay(key, diverges, log, schedule="20")
    assert replay(key, diverges, log, schedule="100000").accepted > 20  # the control: it never learns


def test_a_policy_whose_scores_are_not_finite_has_no_value(key):
    log, policy = in_memory(world(400, 0)), build("lin-ucb", dim=DIM)
    belief = learn_from(key, policy, log).belief
    spoilt = belief._replace(coefficients=np.full_like(belief.coefficients, np.nan))
    with pytest.raises(UnsoundError, match="memory: the policy's scores for decision 1 are not finite.*neural-mix"):
        evaluate(policy, spoilt, log)
    assert len(evaluate(policy, belief, log).estimates) == len(FROZEN)


def test_raw_timestamps_give_linucb_no_value(key):
    chunk = world(400, 0)
    chunk.own[..., 0] = 1.7e9
    with pytest.raises(UnsoundError, match="not finite"):
        evaluate_after_training(key, build("lin-ucb", dim=DIM), in_memory(chunk), methods=("ips",))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"train": 1.0}, "train must be at least 0 and below 1, got 1.0"),
        ({"train": np.nan}, "train must be at least 0 and below 1, got nan"),
        (
            {"methods": ("guess",)},
            "method 'guess' is not known; known: direct, ips, snips, doubly-robust, switch, replay",
        ),
        ({"level": 95}, "level must be above 0 and below 1, got 95"),
        ({"switch": -1}, "switch must be a weight, at least 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(key, argument, message):
    with pytest.raises(ValueError, match=message):
        evaluate_after_training(key, build("uniform", dim=DIM), in_memory(world(100, 0)), **argument)


def test_a_bad_schedule_is_refused_not_noted(key):
    with pytest.raises(InputError, match="schedule must be one of"):
        evaluate_after_training(key, build("uniform", dim=DIM), in_memory(world(100, 0)), schedule="often")

"""NeuralMix in learned units against its transcription, round by round, and what its mixture is for."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import build
from neuralucb.designs import Forgetting
from neuralucb.estimators.features import quadratic, raw, raw_by_arm
from neuralucb.estimators.mixture import weights
from neuralucb.history import History
from neuralucb.policy import Slot
from neuralucb.training import draw_rows
from tests.reference import neural_mix

DIM, ARMS, WIDTH, ROUNDS, EVERY = 5, 3, 6, 60, 12
STEPS, BATCH, STEP_SIZE = 8, 5, 0.01
NUMBERS = {"regularization": 0.3, "discount": 0.98, "sharpness": 0.3, "exploration": 0.5, "recent": 8}
SETTINGS = NUMBERS | {
    "width": WIDTH, "steps": STEPS, "batch_size": BATCH, "step_size": STEP_SIZE,
    "network_precision": "float64", "design_precision": "float64",
}  # fmt: skip


def stream():
    """Contexts in five units, a category and a constant among them, a heavy tail, and rewards of 50 ± 7."""
    generator = np.random.default_rng(11)
    plain = generator.normal(size=(ROUNDS, ARMS, DIM))
    expected = np.sin(2 * plain[..., 0]) + plain[..., 1]
    plain[..., 2] = generator.standard_t(1, size=plain.shape[:2])
    plain[..., 3] = plain[..., 3] > 0.5
    plain[..., 4] = 7.0
    plain[40:, ..., 4] = 8.0  # what never varied does, late
    contexts = plain * np.array([1, 1e3, 1e-2, 3, 1]) + np.array([0, 2e4, 5, 1, 0])
    rewards = 50 + 7 * expected + generator.normal(size=(ROUNDS, 1))
    return contexts.astype(np.float32), rewards.astype(np.float32)


def batches_of(key, seen):
    return np.asarray(draw_rows(jax.random.fold_in(key, 0), (STEPS, BATCH), np.int32(seen)))


def follow(*, shared, design, novelty=0.0):
    """Play beside the transcription, and beside one that rounds to float32; yields all three after every round, and
    whether a lesson changed units."""
    settings = SETTINGS | {"novelty": novelty, "design": design}
    policy = build("neural-mix", dim=DIM, shared_by=ARMS if shared else None, **settings)
    belief = policy.init(jax.random.key(0))
    initials = [[leaf[member] for leaf in belief.inner.networks.initial] for member in range(3)]
    ours, rounded = (
        neural_mix.NeuralMix(
            initials,
            dim=DIM,
            arms=ARMS if shared else None,
            diagonal=design == "diagonal",
            novelty=novelty,
            rounding=each,
            **NUMBERS,
        )
        for each in (np.asarray, np.float32)
    )
    contexts, rewards = stream()
    if shared:
        contexts[:] = contexts[:, :1]
    arms = np.arange(ARMS, dtype=np.int32)
    played, chosen, got = np.zeros((ROUNDS, DIM), np.float32), np.zeros(ROUNDS, np.int32), np.zeros(ROUNDS, np.float32)
    for t in range(ROUNDS):
        slots = Slot(contexts[t], arms) if shared else contexts[t]
        choice = policy.select(jax.random.key(t), belief, slots)
        doubles = contexts[t].astype(np.float64)
        means, widths = np.transpose(
            [ours.predict(x, a if shared else None) for x, a in zip(doubles, arms, strict=True)]
        )
        unit = ours.units.deviation
        upper = means + NUMBERS["exploration"] * widths
        assert_allclose(choice.mean, means, rtol=1e-6, atol=2e-6 * unit)
        assert_allclose(choice.width, widths, rtol=1e-6, atol=2e-6 * unit)
        assert_allclose(choice.score, upper, rtol=1e-6, atol=2e-6 * unit)
        arm = int(choice.arm)
        assert upper[arm] >= upper.max() - 2e-6 * unit  # all that float32 tells apart
        slot = jax.tree.map(lambda leaf, arm=arm: leaf[arm], slots)
        belief = policy.observe(belief, slot, rewards[t, arm])
        for each in (ours, rounded):
            each.observe(doubles[arm], arm if shared else None, float(rewards[t, arm]))
        played[t], chosen[t], got[t] = contexts[t, arm], arm, rewards[t, arm]
        changed = False
        if (t + 1) % EVERY == 0:
            history = History(Slot(played, chosen) if shared else played, got, np.int32(t + 1), np.int32(t + 1))
            belief, info = policy.learn(jax.random.key(1000 + t), belief, history)
            batches = batches_of(jax.random.key(1000 + t), t + 1)
            changed, losses = ours.learn(batches, STEP_SIZE)
            rounded.learn(batches, STEP_SIZE)
            assert not info.diverged
            assert all(after <= 1.1 * before + 1e-3 for before, after in losses)  # so that there was one try
        yield belief, ours, rounded, changed


def assert_same_units(belief, ours):
    assert_allclose(belief.inputs.middle, ours.units.middle, rtol=1e-6)
    assert_allclose(belief.inputs.spread, ours.units.spread, rtol=1e-5)
    for name in ("mean", "deviation", "low", "high"):
        assert_allclose(getattr(belief.rewards, name), getattr(ours.units, name), rtol=1e-6)
    assert int(belief.settled) == ours.settled


def assert_same_networks(networks, ours, design):
    for member, theirs in enumerate(ours.networks):
        for leaf, matrix in zip(networks.params, theirs.weights, strict=True):
            assert_allclose(leaf[member], matrix, rtol=1e-5, atol=1e-6)
        if design == "full":
            assert_allclose(networks.z.inverse[member], np.linalg.inv(theirs.Z), rtol=1e-4, atol=1e-5 / theirs.pull)
        else:
            diagonal = np.concatenate([1 / np.asarray(leaf[member]).ravel() for leaf in networks.z])
            assert_allclose(diagonal, np.diag(theirs.Z), rtol=1e-5)


def assert_same_regression(regression, ours, *, shared):
    z = regression.z
    inverses = np.asarray(z.z.inverse if isinstance(z, Forgetting) else z.inverse)
    for arm, A in ours.A.items():
        assert_allclose(inverses[arm] if shared else inverses, np.linalg.inv(A), rtol=1e-5, atol=1e-6)
    assert_allclose(regression.b.ravel(), np.concatenate(list(ours.b.values())), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shared", "design"), [(False, "diagonal"), (True, "diagonal"), (False, "full")])
def test_neural_mix_follows_the_transcription(shared, design):
    """To 1e-5 or better. Inputs, rewards, units and errors are float32 in the library, and all else is float64.

    Predictions are those of the transcription in float64. What is believed is compared with one that rounds where the
    library does: Adam divides a gradient by its size, and where that is near 0 rounding decides about a weight.
    """
    changes = []
    for belief, ours, rounded, changed in follow(shared=shared, design=design):
        changes.append(changed)
        inner = belief.inner
        assert_allclose(inner.errors, ours.errors, rtol=1e-5, atol=1e-6)
        assert_allclose(inner.validated, ours.count, rtol=1e-6)
        with jax.enable_x64(True):
            assert_allclose(weights(inner, NUMBERS["sharpness"]), ours.weights(), atol=1e-6)
        assert_same_networks(inner.networks, rounded, design)
        for mine, theirs in zip(inner.regressions, rounded.regressions, strict=True):
            assert_same_regression(mine, theirs, shared=shared)
        if ours.settled:
            assert_same_units(belief, ours)
    assert 3 <= sum(changes) <= 4  # at 12, 24, 48, and where the constant begins to vary
    assert not changes[35], "a lesson that kept its units is among them"


def test_an_arm_that_was_played_less_is_wider_as_in_the_transcription():
    for belief, ours, _, _ in follow(shared=True, design="diagonal", novelty=3.0):
        played = [arm for _, arm, _ in ours.history]
        assert belief.inner.plays.tolist() == np.bincount(played, minlength=ARMS).tolist()


def test_products_of_inputs_that_are_too_many_are_counted_and_never_made():
    assert quadratic(raw(10**6), 10**6, scale=1.0).size == 10**6 + 10**6 * (10**6 + 1) // 2
    assert quadratic(raw_by_arm(4, 3), 3, scale=1.0).size == 3 * (4 + 6)
    build(dim=10**6)

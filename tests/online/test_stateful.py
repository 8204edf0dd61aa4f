"""OnlineBandit against a simple model: any sequence of valid and invalid calls, saves and restarts."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from neuralucb import OnlineBandit
from tests.online.helpers import DIM, linear

numbers = st.floats(-1, 1, width=32)
rewards = st.floats(-5, 5, width=32)
bad_rewards = st.sampled_from([float("nan"), float("inf"), -float("inf"), "x"])
bad_contexts = st.sampled_from(
    [np.zeros((2, DIM + 1)), np.zeros((0, DIM)), np.full((2, DIM), np.nan), {"x": 1}, np.zeros((2, 2, DIM)), "abc"]
)


class Online(RuleBasedStateMachine):
    """The model: pending decisions, the counts of observed and expired ones, the arms."""

    @initialize(journalled=st.booleans(), counted=st.booleans(), window=st.sampled_from([None, 4]))
    def begin(self, journalled, counted, window):
        self.home, self.journalled = Path(tempfile.mkdtemp()), journalled
        folder = self.home / "journal" if journalled else None
        self.bandit = OnlineBandit(
            linear(), journal=folder, sync="none", count_pending=counted, window=window,
            schedule="4", snapshot_every=5,
        )  # fmt: skip
        self.pending, self.resolved, self.arms = [], [], []
        self.decided = self.observed = self.expired = 0

    def _add_pending(self, decisions):
        self.pending += [decision.id for decision in decisions]
        self.decided += len(decisions)

    def _refuses(self, call):
        before = repr(self.bandit.state.export())
        with pytest.raises(ValueError, match=".+"):
            call()
        assert repr(self.bandit.state.export()) == before

    @rule(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4), data=st.data())
    def select(self, rows, data):
        mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        if not any(mask):
            self._refuses(lambda: self.bandit.select(rows, available=mask))
            return
        decision = self.bandit.select(rows, available=mask)
        assert mask[decision.position]
        assert len(decision.score) == len(rows)
        self._add_pending([decision])

    @rule(count=st.integers(1, 3))
    def select_many(self, count):
        self._add_pending(self.bandit.select_many(np.ones((count, 2, DIM))))

    @precondition(lambda self: self.arms)
    @rule(shared=numbers, data=st.data())
    def select_arms(self, shared, data):
        arms = data.draw(st.lists(st.sampled_from(self.arms), min_size=1, unique=True))
        decision = self.bandit.select([shared], arms=arms)
        assert decision.arm in arms
        self._add_pending([decision])

    @rule(given=bad_contexts)
    def select_badly(self, given):
        self._refuses(lambda: self.bandit.select(given))

    @precondition(lambda self: self.pending)
    @rule(reward=rewards, data=st.data())
    def observe(self, reward, data):
        decision = data.draw(st.sampled_from(self.pending))
        self.bandit.observe(decision, reward)
        self.pending.remove(decision)
        self.resolved.append(decision)
        self.observed += 1

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def observe_many(self, data):
        some = data.draw(st.lists(st.sampled_from(self.pending), min_size=1, unique=True))
        self.bandit.observe_many(some, [1.0] * len(some))
        self.pending = [decision for decision in self.pending if decision not in some]
        self.resolved += some
        self.observed += len(some)

    @precondition(lambda self: self.pending)
    @rule(reward=bad_rewards, data=st.data())
    def observe_badly(self, reward, data):
        decision = data.draw(st.sampled_from(self.pending))
        self._refuses(lambda: self.bandit.observe(decision, reward))

    @rule(data=st.data())
    def observe_what_is_not_pending(self, data):
        wrong = [
            *self.resolved,
            self.bandit.ids.id_of(99999),
            f"{self.bandit.name}-0",
            "00000000-0",
            "",
            f"{self.bandit.name}-",
        ]
        decision = data.draw(st.sampled_from(wrong))
        self._refuses(lambda: self.bandit.observe(decision, 1.0))
        if self.pending:
            self._refuses(lambda: self.bandit.observe_many([self.pending[0], decision], [1.0, 1.0]))

    @rule()
    def learn(self):
        assert self.bandit.learn().promoted

    @rule()
    def expire(self):
        assert self.bandit.expire(older_than=0) == len(self.pending)
        self.resolved += self.pending
        self.expired += len(self.pending)
        self.pending = []

    @rule(arm=st.sampled_from(["a", "b", 1]), feature=numbers)
    def add_arm(self, arm, feature):
        if arm in self.arms:
            self._refuses(lambda: self.bandit.add_arm(arm, [feature, 1.0]))
        else:
            self.bandit.add_arm(arm, [feature, 1.0])
            self.arms.append(arm)

    @rule(arm=st.sampled_from(["a", "b", 1]))
    def remove_arm(self, arm):
        if arm in self.arms:
            self.bandit.remove_arm(arm)
            self.arms.remove(arm)
        else:
            self._refuses(lambda: self.bandit.remove_arm(arm))
            self._refuses(lambda: self.bandit.select([0.0], arms=[arm]))

    @rule()
    def save_and_load(self):
        before = repr(self.bandit.state.export())
        other = OnlineBandit.load(self.bandit.save(self.home / "saved"))
        assert repr(other.state.export()) == before
        if not self.journalled:
            self.bandit = other

    @precondition(lambda self: self.journalled)
    @rule()
    def restart(self):
        self.bandit.close()
        before = repr(self.bandit.state.export())
        self.bandit = OnlineBandit.load(self.home / "journal")
        assert repr(self.bandit.state.export()) == before

    @invariant()
    def counts_match(self):
        if not hasattr(self, "bandit"):
            return
        health = self.bandit.health()
        assert health.decisions == self.decided
        assert health.pending == len(self.pending)
        assert health.observed == self.observed
        assert health.expired == self.expired
        assert health.refused == health.diverged == 0

    def teardown(self):
        if hasattr(self, "bandit"):
            self.bandit.close()
            shutil.rmtree(self.home)


TestOnline = Online.TestCase
TestOnline.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

"""What an operator does with the data: deletes a person's, excludes a period, keeps it for so long, takes it away."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from neuralucb import OnlineBandit, build, fingerprint
from neuralucb.logs import open_log
from neuralucb.runtime.errors import InputError
from neuralucb.service.postgres import Retention, delete_user, exclude_period, export_log
from neuralucb.service.store import Reward, Settings
from tests.postgres.helpers import PLAN, contexts_of, learning, opened, request, rows


def feed(store, events, **others):
    store.decide([request(event, **others) for event in events])
    store.reward([Reward(event, contexts_of(event)[0, 0].item()) for event in events])


def fitted(address):
    """The bandit that learns at once from all that is left."""
    left = rows(
        address,
        "SELECT context, reward FROM outcomes o JOIN decisions USING (number) "
        "WHERE o.position IS NOT NULL AND forgotten IS NULL ORDER BY o.position",
    )
    bandit = OnlineBandit(build(PLAN.algorithm, dim=PLAN.slots), seed=PLAN.seed, learning="manual")
    bandit.fit(np.stack([np.frombuffer(context, np.float32) for context, _ in left]), None, [each for _, each in left])
    return bandit


def test_deleting_a_user_reaches_rows_snapshots_and_model(address):
    with opened(address) as store, learning(address) as learner:
        feed(store, [f"a{number}" for number in range(12)], user="anna")
        learner.step()
        tainted = store.pin(store.snapshot().number)
        feed(store, [f"b{number}" for number in range(12)], user="ben")
        store.decide([request("pending", user="anna")])
        learner.step()
        before = learner._state.version
        assert delete_user(address, "anna") == (13, 12)
        assert delete_user(address, "anna") == (0, 0)
        assert store.explain("a0") is None
        with pytest.raises(InputError, match="without deleted data"):
            store.rollback(tainted.number)
        learner.step()
        assert fingerprint(learner._state.belief) == fingerprint(fitted(address).state.belief)
        assert learner._state.version > before
        assert tainted.number not in [each.number for each in store.snapshots()]
        assert rows(address, "SELECT count(*) FROM rewards") == [(12,)]
        assert rows(address, "SELECT decisions, learned, relearned_at IS NULL FROM deletions") == [(13, 12, False)]
        feed(store, ["c"])
        learner.step()
        assert learner._state.observations.total == 13


def test_a_deletion_during_the_lesson_is_not_taken_for_done(address):
    with opened(address) as store, learning(address) as learner:
        feed(store, ["a1", "a2"], user="anna")
        feed(store, ["b1", "b2"], user="ben")
        feed(store, ["c1", "c2"])
        learner.step()
        delete_user(address, "anna")
        learn = learner._learn

        def interrupted(deletion=None):
            delete_user(address, "ben")
            learn(deletion)

        learner._learn = interrupted
        learner.step()
        learner._learn = learn
        assert rows(address, "SELECT relearned_at IS NULL FROM deletions ORDER BY number") == [(False,), (True,)]
        learner.step()
        assert rows(address, "SELECT relearned_at IS NULL FROM deletions ORDER BY number") == [(False,), (False,)]
        assert fingerprint(learner._state.belief) == fingerprint(fitted(address).state.belief)


def test_an_excluded_period_stays_in_the_log_but_not_in_the_model(address):
    with opened(address) as store, learning(address) as learner:
        feed(store, ["a", "b", "c"])
        learner.step()
        ((from_here,),) = rows(address, "SELECT clock_timestamp()")
        feed(store, ["poison 1", "poison 2"])
        learner.step()
        assert exclude_period(address, from_here, datetime.now(UTC) + timedelta(hours=1)) == (2, 2)
        learner.step()
        assert learner._state.observations.total == 3
        assert fingerprint(learner._state.belief) == fingerprint(fitted(address).state.belief)
        assert store.explain("poison 1").reward is not None


def test_decisions_are_kept_as_long_as_the_retention_says(address):
    retention = Retention(decisions=3600.0, every=0.0)
    with opened(address) as store, learning(address, retention=retention) as learner:
        feed(store, ["a", "b", "c"])
        store.decide([request("pending")])
        learner.step()
        rows(address, "UPDATE decisions SET made_at = now() - interval '2 hours' WHERE event_id IN ('a', 'pending')")
        learner.step()
        assert rows(address, "SELECT event_id FROM decisions ORDER BY 1") == [("b",), ("c",), ("pending",)]
        assert len(learner._state.observations.in_window()[1]) == 2
        assert learner._state.observations.total == 3


def test_snapshots_are_thinned_to_the_last_and_one_per_day(address):
    retention = Retention(snapshots=2, days=3, every=0.0)
    with opened(address) as store, learning(address, retention=retention) as learner:
        feed(store, [f"a{number}" for number in range(12)])
        learner.step()
        for hours in (30, 29, 200, 3, 2, 1):
            number = store.snapshot().number
            rows(
                address,
                "UPDATE models SET made_at = now() - make_interval(hours => %s) WHERE number = %s",
                hours,
                number,
            )
        pinned = store.pin(store.snapshots()[-4].number)  # 200 hours ago
        learner.step()
        left = [each.number for each in store.snapshots()]
        assert pinned.number in left
        assert len(left) <= 2 + 1 + 3


def test_the_log_is_exported_with_what_the_policy_saw(address, tmp_path):
    with opened(address) as store, learning(address) as learner:
        store.assign_slots(["context/age", "arm/price"])
        feed(store, ["a", "b"])
        store.decide([request("imposed", arms=2, imposed=1), request("deferred", deferred=True)])
        learner.step()
        exported = export_log(address, tmp_path / "log.parquet")
        with pytest.raises(InputError, match="no decision"):
            export_log(address, tmp_path / "none.parquet", until=datetime(2020, 1, 1, tzinfo=UTC))
        assert exported == (3, ("arm 0", "arm 1", "arm 2"))
        log = open_log(tmp_path / "log.parquet")
        (chunk,) = log.chunks()
        assert chunk.id.tolist() == ["a", "b", "imposed"]
        assert log.names.own[:3] == ("context/age", "arm/price", "free[2]")
        np.testing.assert_array_equal(chunk.own[:3], contexts_of("a"))
        assert chunk.reward[:2].tolist() == [contexts_of(event)[0, 0].item() for event in "ab"]
        assert np.isnan(chunk.reward[2])
        assert np.isnan(chunk.propensity[2])  # no other arm could have been answered
        answers = [store.explain(event).answer for event in ("a", "b")]
        assert chunk.propensity[:2].tolist() == [answer.propensities[answer.position] for answer in answers]
        assert chunk.arm[:2].tolist() == [answer.position for answer in answers]
        assert chunk.time[0].astype(float) / 1e6 == pytest.approx(answers[0].time, abs=1e-3)


def test_a_sum_is_exported_once_it_is_complete(address, tmp_path):
    with opened(address) as store, learning(address) as learner:
        store.configure(Settings(aggregation="sum", wait_seconds=600.0))
        store.decide([request("a"), request("b")])
        store.reward([Reward("a", 1.0), Reward("b", 1.0)])
        rows(address, "UPDATE outcomes SET due_at = now() WHERE number = (SELECT min(number) FROM outcomes)")
        learner.step()
        export_log(address, tmp_path / "log.parquet")
        (chunk,) = open_log(tmp_path / "log.parquet").chunks()
        np.testing.assert_array_equal(chunk.reward, [1.0, np.nan])


def test_events_a_period_and_an_arm_are_removed_by_a_request(address):
    with opened(address) as store, learning(address) as learner:
        feed(store, [f"e{number}" for number in range(20)])
        store.decide([request("pending")])
        learner.step()
        assert store.forget(["e3", "pending"], None, None, None) == (1, 1)
        assert store.explain("pending").status == "expired"
        arms = [store.explain(f"e{number}").answer.position for number in range(20) if number != 3]
        assert store.forget(None, 1.0, None, "arm 1") == (arms.count(1), 0)
        learner.step()
        assert fingerprint(learner._state.belief) == fingerprint(fitted(address).state.belief)
        assert learner._state.observations.total == 19 - arms.count(1)
        with pytest.raises(InputError, match="there is no event 'nobody'"):
            store.forget(["nobody"], None, None, None)
        with pytest.raises(InputError, match="in the future"):
            store.forget(None, 9e9, None, None)

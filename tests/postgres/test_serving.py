"""`neuralucb serve` over PostgreSQL: two processes answer as one."""

import hashlib
import os
import signal
from importlib.resources import files

import pytest

from neuralucb import InputError, StorageError
from neuralucb.service.postgres.schema import FORMAT, UPGRADES
from tests.postgres.helpers import PLAN, eventually, learning, opened, request, rows
from tests.service.live import serving

SCRIPTS = ("schema.sql", "functions.sql")
ARMS = [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}]


@pytest.fixture
def replicas(address, tmp_path):
    """One that serves and learns, one that only serves."""
    with (
        serving(tmp_path, "--store", address) as first,
        serving(tmp_path, "--store", f"{address}&role=serve") as second,
    ):
        yield first, second


def test_two_replicas_answer_as_one_through_a_kill_and_an_outage(server, address, replicas):
    first, second = replicas
    ask = {"event_id": "e1", "context": {"city": "Oslo"}, "arms": ARMS, "user": "anna"}
    status, answer = first.ask("POST", "/v1/decide", ask)
    assert status == 200
    again_status, again = second.ask("POST", "/v1/decide", ask)
    assert again_status == 200
    assert again["repeated"]
    assert again["arm"] == answer["arm"]
    assert second.ask("POST", "/v1/reward", {"event_id": "e1", "reward": 1})[0] in (200, 204)
    for number in range(12):
        event = {**ask, "event_id": f"more {number}"}
        assert second.ask("POST", "/v1/decide", event)[0] == 200
        assert first.ask("POST", "/v1/reward", {"event_id": f"more {number}", "reward": 0})[0] in (200, 204)
    eventually(lambda: second.ask("GET", "/health")[1]["gauges"]["model_version"] >= 12)
    os.kill(first.process.pid, signal.SIGKILL)
    status, explained = second.ask("GET", "/v1/decisions/e1")
    assert status == 200
    assert explained["reward"] == 1
    server.control("-m", "fast", "-w", "stop")
    try:
        status, refused = second.ask("POST", "/v1/decide", {**ask, "event_id": "e2"})
        assert (status, refused["error"]["code"]) == (503, "unavailable")
        assert second.ask("GET", "/health/ready")[0] == 503
        assert second.ask("GET", "/health/live")[0] == 200
    finally:
        server.start()
    eventually(lambda: second.ask("POST", "/v1/decide", {**ask, "event_id": "e2"})[0] == 200)
    assert rows(address, "SELECT count(*) FROM events WHERE user_key = 'anna'") == [(14,)]


def test_a_schema_of_an_older_format_is_upgraded_on_start(address):
    with opened(address):
        pass
    rows(address, "DROP FUNCTION settle_events; UPDATE bandit SET format = 1")
    rows(address, "CREATE OR REPLACE VIEW rewards_by_hour AS SELECT now() AS hour, 0::bigint AS decisions, "
                  "0::double precision AS mean_reward, 0::bigint AS defaulted, 0::numeric AS explored")  # fmt: skip
    with opened(address) as store, learning(address) as learner:
        store.decide([request("e")])
        learner.step()  # which settles
        assert rows(address, "SELECT format FROM bandit") == [(FORMAT,)]
        assert rows(address, "SELECT decisions FROM rewards_by_hour") == [(1,)]
    rows(address, "UPDATE bandit SET format = 99")
    with pytest.raises(StorageError, match="update neuralucb"), opened(address):
        pass


@pytest.mark.parametrize(
    "changes", [{"algorithm": "oracle"}, {"options": {"foo": 1}}, {"floor": 7}, {"schedule": "often"}]
)
def test_a_plan_that_cannot_be_served_is_refused_and_not_kept(address, changes):
    with pytest.raises(InputError), opened(address, plan=PLAN._replace(**changes)):
        pass
    with opened(address) as store:
        assert store.plan == PLAN


def test_tables_and_functions_are_those_of_their_format():
    """If this fails: raise FORMAT, name in UPGRADES what an older schema needs, and write the new number down here."""
    text = b"".join(files("neuralucb.service.postgres").joinpath(name).read_bytes() for name in SCRIPTS)
    assert (FORMAT, hashlib.sha256(text).hexdigest()[:16]) == (2, "d3068d4aafeb28ee")
    assert set(range(2, FORMAT + 1)) == set(UPGRADES)

"""The dashboard and `/v1/status`, without a browser; and what an operator may do."""

import asyncio
import json
import re
import time
from pathlib import Path

import pytest

from neuralucb.service import charts
from neuralucb.service.config import Tokens
from neuralucb.service.store import StoreHealth
from neuralucb.service.values import Value
from tests.service.direct import CONFIG, play

NASTY = '<script>alert(1)</script>&"'
ARMS = [{"id": NASTY, "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}]
ASK = {"context": {"hour": 9}, "arms": ARMS}
EXAMINED = 1.2
"""Seconds after which health is examined again."""
READ, DECIDE = "read-read-read-read", "decide-decide-decide"


def bearer(token):
    return [(b"authorization", f"Bearer {token}".encode())]


async def traffic(client, count=60, *, ask=ASK):
    for number in range(count):
        await client("POST", "/v1/decide", {"event_id": f"e{number}", **ask})
        await client("POST", "/v1/reward", {"event_id": f"e{number}", "reward": number % 2})


def test_the_page_has_the_numbers_and_nothing_that_runs_but_its_own_script(tmp_path):
    async def scenario(client):
        await traffic(client)
        await asyncio.sleep(EXAMINED)
        page = await client("GET", "/")
        status = (await client("GET", "/v1/status")).json
        return page, status

    page, status = play(scenario, tmp_path)
    text = page.data.decode()
    assert page.status == 200
    assert status["counters"]["decisions"] == status["counters"]["observed"] == 60
    assert status["values"]["served"]["value"] == pytest.approx(0.5)
    assert "<dt>Mean reward</dt><dd>0.5</dd>" in text
    assert "60 in all" in text
    assert NASTY not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;" in text
    assert text.count("<script") == 1
    assert {arm["id"] for arm in status["values"]["arms"]} <= {NASTY, "b"}
    assert status["values"]["baseline"]["value"] is not None
    assert status["latency"]["POST /v1/decide"]["answers"] == 60
    assert 0 < status["latency"]["POST /v1/decide"]["p50"] <= status["latency"]["POST /v1/decide"]["p99"]
    assert status["lessons"]
    assert all(lesson["promoted"] for lesson in status["lessons"])


def test_the_page_asks_nothing_of_others(tmp_path):
    async def scenario(client):
        return await client("GET", "/")

    page = play(scenario, tmp_path)
    policy = page.headers[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    text = page.data.decode()
    assert not re.search(r"https?://|\bsrc=|@import|url\(", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    assert "style=" not in text  # the policy would forbid it


def test_without_decisions_the_page_says_so(tmp_path):
    async def scenario(client):
        return await client("GET", "/"), await client("HEAD", "/")

    page, head = play(scenario, tmp_path)
    assert "No decisions yet" in page.data.decode()
    assert "too few complete decisions" in page.data.decode()
    assert head.status == 200  # without its body: test_connection.py


def test_numbers_need_a_token_where_tokens_are_set(tmp_path):
    config = CONFIG._replace(tokens=Tokens(decide=(DECIDE,), admin=("admin-admin-admin",), read=(READ,)))

    async def scenario(client):
        made = await client("POST", "/v1/decide", {"event_id": "e", **ASK}, headers=bearer(DECIDE))
        assert made.status == 200
        assert (await client("GET", "/v1/status")).status == 401
        assert (await client("GET", "/v1/status", headers=bearer(DECIDE))).status == 403
        bare, wrong = await client("GET", "/"), await client("GET", "/", headers=bearer(DECIDE))
        for page in (bare, wrong):
            text = page.data.decode()
            assert page.status == 200
            assert 'type="password"' in text
            assert "Decisions per minute" not in text
            assert "embedded" not in text
        assert "needs a token of the role read" in wrong.data.decode()
        for token in (READ, "admin-admin-admin"):
            assert "Decisions per minute" in (await client("GET", "/", headers=bearer(token))).data.decode()
            for path in ("/v1/status", "/health", "/metrics"):
                assert (await client("GET", path, headers=bearer(token))).status == 200
        changed = await client("PATCH", "/v1/settings", {"learning": False}, headers=bearer(READ))
        assert changed.status == 403

    play(scenario, tmp_path, config)


def test_alarms_are_words(tmp_path):
    async def scenario(client):
        store = client.app._engine.store
        await client("PATCH", "/v1/settings", {"learning": False, "mode": "apprentice", "excluded": [NASTY]})
        healthy = store.health()
        counters = {**healthy.counters, "late": 50, "unknown": 50, "observed": 100}
        gauges = {**healthy.gauges, "model_age_seconds": 7200.0, "pending": 999_999.0}
        store.health = lambda: StoreHealth("embedded", "the disk is full", False, "none yet", counters, gauges)
        client.app._engine.traffic.look(time.time() - 60, dict.fromkeys(counters, 0))
        client.app.metrics.count("POST /v1/decide", 429, 0.001)
        paused = (await client("GET", "/v1/status")).json["alarms"]
        await client("PATCH", "/v1/settings", {"learning": True})
        return paused, (await client("GET", "/v1/status")).json["alarms"], await client("GET", "/")

    paused, learning, page = play(scenario, tmp_path)
    words = " ".join(alarm["words"] for alarm in paused)
    for part in (
        "No decisions are accepted", "The disk is full.", "1 request answered 429", "25% of the rewards come late",
        "25% of the rewards are for events that are not known", "999999 events wait", "Learning is paused",
        "Apprentice mode", "Excluded and never chosen",
    ):  # fmt: skip
        assert part in words, part
    assert "No good lesson" not in words  # it is paused
    assert any("No good lesson for 2 hours" in alarm["words"] for alarm in learning)
    assert [alarm["level"] for alarm in paused][:2] == ["bad", "bad"]
    text = page.data.decode()
    assert "<title>Failing" in text
    assert NASTY not in text


def test_an_excluded_arm_is_never_chosen_and_a_pinned_one_always_also_after_a_restart(tmp_path):
    ask = {"context": {"hour": 1}, "arms": ["a", "b", "c"]}

    async def scenario(client):
        assert (await client("PATCH", "/v1/settings", {"excluded": ["a"], "pinned": None})).status == 200
        for number in range(20):
            made = (await client("POST", "/v1/decide", {"event_id": f"x{number}", **ask})).json
            assert made["arm"] != "a"
            assert made["arms"][0]["propensity"] == 0
        refused = await client("POST", "/v1/decide", {"context": {}, "arms": ["a"]})
        assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_request")
        assert "operator" in refused.json["error"]["message"]
        assert (await client("PATCH", "/v1/settings", {"pinned": "c"})).status == 200

    async def later(client):
        assert (await client("GET", "/v1/settings")).json["excluded"] == ["a"]
        for number in range(10):
            made = (await client("POST", "/v1/decide", {"event_id": f"y{number}", **ask})).json
            assert (made["arm"], made["propensity"]) == ("c", 1)
        without = (await client("POST", "/v1/decide", {**ask, "excluded": ["c"]})).json
        assert without["arm"] == "b"  # a request that excludes it has its way
        for bad in ({"pinned": "a"}, {"pinned": ""}, {"excluded": "a"}, {"excluded": [1]}, {"excluded": ["x"] * 1001}):
            told = await client("PATCH", "/v1/settings", bad)
            assert (told.status, told.json["error"]["code"]) == (400, "invalid_request"), bad

    play(scenario, tmp_path)
    play(later, tmp_path)


def test_exploration_and_schedule_change_without_losing_what_was_learned(tmp_path):
    ask = {"context": {"hour": 1}, "arms": ["a", "b", "c", "d"]}

    async def decided(client, name):
        made = (await client("POST", "/v1/decide", {"event_id": name, **ask})).json
        return min(arm["propensity"] for arm in made["arms"]), made["version"]

    async def scenario(client):
        await client("PATCH", "/v1/settings", {"schedule": "1000"})
        await traffic(client, 8, ask=ask)
        await asyncio.sleep(0.3)
        health = await client.app._engine.call(client.app._engine.store.health)
        chance, version = await decided(client, "before")
        assert chance == pytest.approx(0.2 / 4)
        assert (await client("PATCH", "/v1/settings", {"floor": 0.4})).status == 200
        after, same = await decided(client, "after")
        assert after == pytest.approx(0.4 / 4)
        assert same == version >= 8
        assert health.counters["lessons"] == 0
        for bad in ({"floor": 1.5}, {"floor": True}, {"schedule": "often"}, {"schedule": "9!"}, {"schedule": 5}):
            assert (await client("PATCH", "/v1/settings", bad)).status == 400, bad

    async def later(client):
        chance, version = await decided(client, "later")
        assert chance == pytest.approx(0.4 / 4)
        assert version >= 8
        assert (await client("GET", "/v1/settings")).json["schedule"] == "1000"
        await client("PATCH", "/v1/settings", {"floor": None})
        assert (await decided(client, "as made"))[0] == pytest.approx(0.2 / 4)

    play(scenario, tmp_path)
    play(later, tmp_path)


def test_the_way_back_can_be_told_as_a_time(tmp_path):
    async def scenario(client):
        await traffic(client, 4)
        first = (await client("POST", "/v1/snapshots")).json
        moment = time.time()
        await traffic(client, 8)
        await client("POST", "/v1/snapshots")
        back = await client("POST", "/v1/rollback", {"time": moment})
        assert (back.status, back.json["number"]) == (200, first["number"])
        assert (await client("POST", "/v1/rollback", {"time": 5})).status == 404
        for bad in ({"time": "now"}, {"time": 1, "snapshot": 1}, {}):
            assert (await client("POST", "/v1/rollback", bad)).status == 400

    play(scenario, tmp_path)


def test_charts_have_round_ticks_and_stay_inside():
    line = charts.Line("a & b", "a", [0.13, 0.2, 0.31], [0.1, 0.15, 0.25], [0.16, 0.25, 0.37])
    drawn = charts.lines("title", [0.0, 60.0, 120.0], [line], 120.0, zero=False)
    assert "a &amp; b" in drawn
    assert re.findall(r'text-anchor="end">([\d.]+)</text>', drawn) == ["0.1", "0.2", "0.3", "0.4"]
    points = [float(each) for pair in re.findall(r"[\d.]+,[\d.]+", drawn) for each in pair.split(",")]
    assert all(0 <= each <= charts.WIDTH for each in points)
    flat = charts.lines("title", [0.0, 1.0], [charts.Line("x", "a", [0.0, 0.0])], 1.0)
    assert "nan" not in flat
    one = charts.intervals("title", [("x", Value(1.0, 1.0, 1.0, 9.0, "")), ("y", Value(None, None, None, 0.0, "no"))])
    assert one.count("<circle") == 1
    assert charts.intervals("title", []) == ""


def test_grafana_asks_only_for_metrics_that_are_exported(tmp_path):
    panels = json.loads((Path(__file__).parents[2] / "docs/examples/grafana.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    asked = {name for each in expressions for name in re.findall(r"neuralucb_\w+", each)}

    async def scenario(client):
        await traffic(client, 12)
        await client("PATCH", "/v1/settings", {"mode": "apprentice", "learning": False})
        await client("POST", "/v1/decide", ASK)
        await asyncio.sleep(0.3)
        client.app._engine.store._bandit.state.loss = 0.1  # linear policies have none
        await asyncio.sleep(EXAMINED)
        return (await client("GET", "/metrics")).data.decode()

    exported = set(re.findall(r"^(neuralucb_\w+)", play(scenario, tmp_path), re.MULTILINE))
    assert len(asked) > 10
    assert asked <= exported, asked - exported

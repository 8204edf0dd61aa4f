"""The service's answers: decisions, repeats, errors with stable codes, and limits."""

import asyncio
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pytest

from neuralucb.service import openapi
from neuralucb.service.config import Limits, Tokens
from neuralucb.service.embedded import EmbeddedStore
from neuralucb.service.errors import CODES
from neuralucb.service.personalizer import ranked
from neuralucb.service.server import application
from neuralucb.service.store import Settings
from tests.service.direct import CONFIG, play

ARMS = [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}]
ASK = {"context": {"hour": 9, "device": "phone"}, "arms": ARMS}


def test_a_decision_a_reward_and_an_explanation(tmp_path):
    async def scenario(client):
        made = await client("POST", "/v1/decide", {"event_id": "e 1/ü", **ASK})
        assert made.status == 200
        assert made.json["arm"] in ("a", "b")
        assert sum(arm["propensity"] for arm in made.json["arms"]) == pytest.approx(1)
        again = await client("POST", "/v1/decide", {**ASK, "event_id": "e 1/ü"})
        assert again.json == {**made.json, "repeated": True}
        other = await client("POST", "/v1/decide", {"event_id": "e 1/ü", **ASK, "context": {"hour": 10}})
        assert (other.status, other.json["error"]["code"]) == (409, "conflict")
        rewarded = await client("POST", "/v1/reward", {"event_id": "e 1/ü", "reward": 2})
        assert rewarded.json == {"event_id": "e 1/ü", "status": "learned"}
        shown = await client("GET", "/v1/decisions/e%201%2F%C3%BC")
        assert shown.json["reward"] == 2
        assert shown.json["features"]["context"] == ASK["context"]
        unknown = await client("POST", "/v1/reward", {"event_id": "nobody", "reward": 2})
        assert (unknown.status, unknown.json["error"]["code"]) == (404, "unknown_event")
        metrics = await client("GET", "/metrics")
        assert b'neuralucb_requests_total{route="POST /v1/decide",status="200"} 2' in metrics.data

    play(scenario, tmp_path)


def test_the_longest_ids_fit_into_a_path(tmp_path):
    longest = "\U0001f600" * 256

    async def scenario(client):
        assert (await client("POST", "/v1/decide", {"event_id": longest, **ASK})).status == 200
        quoted = quote(longest)
        assert (await client("GET", f"/v1/decisions/{quoted}")).status == 200
        path = f"/personalizer/{quoted}/events/{quoted}/reward"
        assert (await client("POST", path, {"value": 1})).status == 204

    play(scenario, tmp_path)


def test_registered_arms_are_used_where_a_request_names_none(tmp_path):
    async def scenario(client):
        empty = await client("POST", "/v1/decide", {"context": {}})
        assert (empty.status, empty.json["error"]["target"]) == (400, "arms")
        for arm in ("x", "y"):
            assert (await client("PUT", f"/v1/arms/{arm}", {"features": {"price": 1}})).status == 201
        assert (await client("PUT", "/v1/arms/x", {"features": None})).status == 200
        assert (await client("PUT", "/v1/arms/x", {"features": 7})).json["error"]["code"] == "invalid_features"
        made = await client("POST", "/v1/decide", {"context": {"h": 1}, "excluded": ["y"]})
        assert made.json["arm"] == "x"
        assert [arm["propensity"] for arm in made.json["arms"]] == [1, 0]
        assert [arm["id"] for arm in (await client("GET", "/v1/arms")).json["arms"]] == ["x", "y"]
        assert (await client("DELETE", "/v1/arms/y")).status == 204
        assert (await client("DELETE", "/v1/arms/y")).status == 404

    play(scenario, tmp_path)


def test_requests_that_come_together_get_the_answers_they_would_get_alone(tmp_path):
    asks = [{"event_id": f"e{i}", "context": {"hour": i % 5}, "arms": ARMS[: 1 + i % 2]} for i in range(40)]

    async def together(client):
        answers = await asyncio.gather(*(client("POST", "/v1/decide", ask) for ask in asks))
        batches = client.app._engine.deciding.batches
        assert batches < 40
        return [answer.json for answer in answers]

    async def alone(client):
        return [(await client("POST", "/v1/decide", ask)).json for ask in asks]

    async def in_one(client):
        return (await client("POST", "/v1/decide/batch", {"requests": asks})).json["decisions"]

    first, second, third = (play(each, tmp_path / each.__name__) for each in (together, alone, in_one))
    for one, two, three in zip(first, second, third, strict=True):
        assert one["event_id"] == two["event_id"] == three["event_id"]
        for other in (two, three):
            shares = [[arm["propensity"] for arm in each["arms"]] for each in (one, other)]
            np.testing.assert_allclose(*shares, rtol=1e-6)


def test_batches_answer_every_item_for_itself(tmp_path):
    async def scenario(client):
        asks = [{"event_id": "e1", **ASK}, {"arms": []}, {"arms": ["a"], "context": {"x": "y" * 999}}]
        made = (await client("POST", "/v1/decide/batch", {"requests": asks})).json["decisions"]
        assert made[0]["event_id"] == "e1"
        assert [each["error"]["code"] for each in made[1:]] == ["invalid_request", "invalid_features"]
        rewards = [{"event_id": "e1", "reward": 1}, {"event_id": "e1", "reward": 1}, {"event_id": "e9", "reward": True}]
        told = (await client("POST", "/v1/reward/batch", {"rewards": rewards})).json["rewards"]
        assert told[:2] == [{"status": "learned"}, {"status": "repeated"}]
        assert told[2]["error"]["target"] == "reward"

    play(scenario, tmp_path)


@pytest.mark.parametrize(
    ("path", "raw", "code"),
    [
        ("/v1/decide", b"{", "invalid_json"),
        ("/v1/decide", b'{"context": NaN}', "invalid_json"),
        ("/v1/decide", b"\xff", "invalid_json"),
        ("/v1/decide", b'{"arms": ["a"], "user": "\\ud800"}', "invalid_json"),
        ("/v1/decide", b"[1]", "invalid_request"),
        ("/v1/decide", b'{"arm": ["a"]}', "invalid_request"),
        ("/v1/decide", b'{"arms": ["a", "a"]}', "invalid_request"),
        ("/v1/decide", b'{"arms": ["a"], "excluded": ["a"]}', "invalid_request"),
        ("/v1/decide", b'{"arms": ["a"], "event_id": ""}', "invalid_request"),
        ("/v1/decide", b'{"arms": ["a"], "context": {"x": 1e39}}', "invalid_features"),
        ("/v1/decide", b'{"arms": ["a"], "context": 7}', "invalid_features"),
        ("/v1/decide", b'{"arms": ["a"], "context": {"_x": ' + b"[" * 600 + b"]" * 600 + b"}}", "invalid_request"),
        ("/v1/decide", b'{"arms": ["a"], "context": {"x": ' + b"[" * 100 + b"]" * 100 + b"}}", "invalid_features"),
        ("/v1/reward", b'{"event_id": "e", "reward": 1e31}', "invalid_request"),
        ("/v1/reward", b'{"event_id": "e"}', "invalid_request"),
        ("/v1/reward", b'{"event_id": "e", "reward": 1, "x": 2}', "invalid_request"),
        ("/v1/rollback", b'{"snapshot": true}', "invalid_request"),
        ("/v1/rollback", b'{"snapshot": 99}', "not_found"),
        ("/v1/nothing", b"{}", "not_found"),
        ("/metrics", b"{}", "method_not_allowed"),
    ],
)
def test_what_cannot_be_used_has_a_code_and_words(tmp_path, path, raw, code):
    async def scenario(client):
        answer = await client("POST", path, raw=raw)
        assert (answer.status, answer.json["error"]["code"]) == (CODES[code][0], code)
        assert answer.json["error"]["message"]

    play(scenario, tmp_path)


def test_other_media_types_and_too_many_arms_are_refused(tmp_path):
    async def scenario(client):
        plain = await client("POST", "/v1/decide", raw=b"{}", kind=b"text/plain")
        assert plain.json["error"]["code"] == "unsupported_media_type"
        many = await client("POST", "/v1/decide", {"arms": [f"a{i}" for i in range(6)]})
        assert many.json["error"]["target"] == "arms"

    play(scenario, tmp_path, CONFIG._replace(limits=Limits(arms=5)))


def test_tokens_have_roles(tmp_path):
    tokens = Tokens(decide=("d" * 16,), reward=("r" * 16,), admin=("a" * 16,))

    async def scenario(client):
        async def status(method, path, body, *headers):
            return (await client(method, path, body, headers=headers)).status

        def bearer(letter):
            return b"authorization", b"Bearer " + letter * 16

        decide, reward = ("POST", "/v1/decide", ASK), ("POST", "/v1/reward", {"event_id": "e", "reward": 1})
        assert await status(*decide) == 401
        assert await status(*decide, bearer(b"x")) == 401
        assert await status(*decide, bearer(b"d")) == 200
        assert await status(*decide, (b"ocp-apim-subscription-key", b"d" * 16)) == 200
        assert await status(*decide, bearer(b"r")) == 403
        assert await status(*reward, bearer(b"d")) == 403
        assert await status(*reward, bearer(b"r")) == 404
        assert await status("GET", "/v1/snapshots", None, bearer(b"d")) == 403
        for method, path, body in (decide, ("GET", "/v1/snapshots", None), ("GET", "/metrics", None)):
            assert await status(method, path, body, bearer(b"a")) == 200
        assert await status("GET", "/health/live", None) == 200

    play(scenario, tmp_path, CONFIG._replace(tokens=tokens))


def test_pages_of_other_sites_may_not_ask_a_service_without_tokens(tmp_path):
    """A browser on this machine would let them: with a name that leads to 127.0.0.1, or a form that posts to it."""
    token = (b"authorization", b"Bearer 0123456789abcdef")
    fine = [(b"localhost:8080", None), (b"127.0.0.1:8080", b"http://127.0.0.1:8080"), (b"[::1]:8080", None)]
    others = [
        (b"rebound.example:8080", None),
        (b"localhost.example", None),
        (b"[oops", None),
        (b"", None),
        (b"127.0.0.1:8080", b"http://example.org"),
        (b"127.0.0.1:8080", b"http://127.0.0.1:9"),
        (b"127.0.0.1:8080", b"null"),
    ]

    async def statuses(client):
        answers = []
        for host, origin in [*fine, *others]:
            sent = [(b"host", host), token, *([] if origin is None else [(b"origin", origin)])]
            answers.append((await client("POST", "/v1/snapshots", headers=sent)).status)
        return answers

    assert play(statuses, tmp_path / "open") == [201] * len(fine) + [403] * len(others)
    guarded = CONFIG._replace(tokens=Tokens(admin=("0123456789abcdef",)))
    assert play(statuses, tmp_path / "guarded", guarded) == [201] * (len(fine) + len(others))


def test_an_arm_that_no_decision_could_use_is_not_registered(tmp_path):
    async def scenario(client):
        for features in ({"price": 1e300}, {"name": "x" * 600}, 7):
            refused = await client("PUT", "/v1/arms/a", {"features": features})
            assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_features")
        assert (await client("GET", "/v1/arms")).json == {"arms": []}

    play(scenario, tmp_path)


def test_a_full_queue_is_answered_429_and_everything_accepted_is_decided(tmp_path):
    config = CONFIG._replace(limits=Limits(queue=4))

    async def scenario(client):
        asks = [{"event_id": f"e{i}", **ASK} for i in range(60)]
        answers = await asyncio.gather(*(client("POST", "/v1/decide", ask) for ask in asks))
        kinds = {answer.status for answer in answers}
        assert kinds == {200, 429}
        refused = [answer for answer in answers if answer.status == 429]
        assert refused[0].json["error"]["code"] == "overloaded"
        assert b"retry-after" in refused[0].headers
        for ask, answer in zip(asks, answers, strict=True):
            known = await client("GET", f"/v1/decisions/{ask['event_id']}")
            assert (known.status == 200) == (answer.status == 200)

    play(scenario, tmp_path, config)


def test_too_many_pending_events_are_answered_429(tmp_path):
    async def scenario(client):
        client.app._engine.pending = 5
        answer = await client("POST", "/v1/decide", ASK)
        assert (answer.status, answer.json["error"]["code"]) == (429, "overloaded")

    play(scenario, tmp_path, CONFIG._replace(limits=Limits(pending=5)))


def test_default_rewards_are_given_without_being_asked(tmp_path):
    store = EmbeddedStore(tmp_path, CONFIG.plan, arms=4)
    store.configure(Settings(wait_seconds=0.3, default_reward=-1.0))

    async def scenario(client):
        await client("POST", "/v1/decide", {"event_id": "e", **ASK})
        for _ in range(100):
            await asyncio.sleep(0.1)
            shown = (await client("GET", "/v1/decisions/e")).json
            if shown["status"] != "waiting":
                break
        assert (shown["status"], shown["reward"]) == ("defaulted", -1)
        late = await client("POST", "/v1/reward", {"event_id": "e", "reward": 1})
        assert late.json["status"] == "late"

    play(scenario, tmp_path, store=store)


def test_settings_are_changed_and_checked(tmp_path):
    async def scenario(client):
        changed = await client("PATCH", "/v1/settings", {"mode": "apprentice", "reward_range": [0, 1]})
        assert changed.json["mode"] == "apprentice"
        assert (await client("GET", "/v1/settings")).json == changed.json
        for wrong in (
            {"mode": "x"},
            {"nothing": 1},
            {"wait_seconds": -1},
            {"aggregation": "sum", "wait_seconds": None},
        ):
            assert (await client("PATCH", "/v1/settings", wrong)).status == 400
        made = await client("POST", "/v1/decide", {"event_id": "e", **ASK})
        assert (made.json["arm"], made.json["propensity"]) == ("a", 1)
        assert (await client("POST", "/v1/reward", {"event_id": "e", "reward": 2})).json["error"]["target"] == "reward"
        assert b'neuralucb_apprentice_total{matched="' in (await client("GET", "/metrics")).data

    play(scenario, tmp_path)


def test_snapshots_are_made_listed_and_returned_to(tmp_path):
    async def scenario(client):
        await client("POST", "/v1/decide", {"event_id": "e", **ASK})
        made = await client("POST", "/v1/snapshots")
        assert made.status == 201
        await client("POST", "/v1/reward", {"event_id": "e", "reward": 1})
        assert (await client("GET", "/v1/snapshots")).json["snapshots"][-1] == made.json
        back = await client("POST", "/v1/rollback", {"snapshot": made.json["number"]})
        assert back.json == made.json

    play(scenario, tmp_path)


def test_a_store_that_cannot_be_written_is_503_and_not_ready(tmp_path):
    store = EmbeddedStore(tmp_path / "store", CONFIG.plan, arms=4)

    async def scenario(client):
        assert (await client("GET", "/health/ready")).status == 200
        for path in (tmp_path / "store").iterdir():
            path.unlink()
        answer = await client("POST", "/v1/decide", ASK)
        assert (answer.status, answer.json["error"]["code"]) == (503, "unavailable")
        store._examined = None
        ready = await client("GET", "/health/ready")
        assert ready.status == 503
        assert str(tmp_path) not in ready.data.decode()  # anyone may ask
        assert (await client("GET", "/health/live")).status == 200
        assert (await client("GET", "/health")).json["status"] == "failing"

    play(scenario, tmp_path, store=store)


def test_the_description_has_every_route_and_no_other(tmp_path):
    app = application(lambda: None, CONFIG)
    described = {
        (method.upper(), path)
        for path, methods in openapi.document()["paths"].items()
        for method in methods
        if method != "parameters"
    }
    assert described == {(route.method, route.path) for route in app.routes}


@pytest.mark.parametrize(
    "allowed", [[True, True, True], [False, True, True], [True, False, False], [False, False, True]]
)
@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_a_ranking_names_each_action_once_also_if_the_chosen_one_was_excluded_since(allowed, chosen):
    answer = SimpleNamespace(score=np.array([0.1, 0.3, 0.2]), position=chosen)
    places = ranked(SimpleNamespace(answer=answer, allowed=np.array(allowed)))
    assert sorted(places) == [0, 1, 2]
    assert places[[each or place == chosen for place, each in enumerate(allowed)].index(True)] == chosen


def test_candidates_are_added_shown_and_promoted_by_those_who_may(tmp_path):
    admin, read = "admin-admin-admin-admin", "read-read-read-read-read"
    config = CONFIG._replace(tokens=Tokens(admin=(admin,), read=(read,)))

    def bearer(token):
        return [(b"authorization", f"Bearer {token}".encode())]

    async def scenario(client):
        spec = {"algorithm": "lin-ucb", "options": {"exploration": 2.0}}
        assert (await client("PUT", "/v1/candidates/bold", spec, headers=bearer(read))).status == 403
        assert (await client("PUT", "/v1/candidates/bold", spec, headers=bearer(admin))).status == 201
        assert (await client("PUT", "/v1/candidates/bold", spec, headers=bearer(admin))).status == 200
        for path, body in (
            ("Bold", spec),
            ("a%2Fb", spec),
            ("x", {"algorithm": "no-such"}),
            ("x", {"algorithm": "lin-ucb", "options": {"shared_by": 3}}),
            ("x", {**spec, "floor": 2}),
            ("x", {**spec, "width": 3}),
            ("x", []),
            ("original", spec),
        ):
            answer = await client("PUT", f"/v1/candidates/{path}", body, headers=bearer(admin))
            assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_request"), (path, body)
        shown = (await client("GET", "/v1/candidates", headers=bearer(read))).json
        assert shown["deciding"]["name"] == "original"
        assert [each["name"] for each in shown["candidates"]] == ["bold"]
        page = (await client("GET", "/", headers=bearer(read))).data.decode()
        assert "<h2>Candidates</h2>" in page
        text = (await client("GET", "/metrics", headers=bearer(read))).data.decode()
        assert 'neuralucb_candidate_decisions{candidate="bold"} 0' in text
        for path in ("nobody", "nobody/promote"):
            method = "POST" if "/" in path else "DELETE"
            assert (await client(method, f"/v1/candidates/{path}", headers=bearer(admin))).status == 404
        assert (await client("POST", "/v1/candidates/bold/promote", headers=bearer(read))).status == 403
        done = await client("POST", "/v1/candidates/bold/promote", headers=bearer(admin))
        assert done.json["deciding"]["name"] == "bold"
        status = (await client("GET", "/v1/status", headers=bearer(read))).json
        assert status["deciding"] == "bold"
        assert [each["name"] for each in status["candidates"]] == ["original"]
        assert (await client("DELETE", "/v1/candidates/original", headers=bearer(admin))).status == 204

    play(scenario, tmp_path, config)


def test_two_changes_of_settings_at_once_are_both_kept(tmp_path):
    async def scenario(client):
        changes = [{"default_reward": 2.0}, {"wait_seconds": 7.0}, {"mode": "apprentice"}, {"reward_range": [0, 3]}]
        await asyncio.gather(*(client("PATCH", "/v1/settings", each) for each in changes))
        return (await client("GET", "/v1/settings")).json

    found = play(scenario, tmp_path)
    assert (found["default_reward"], found["wait_seconds"], found["mode"]) == (2.0, 7.0, "apprentice")
    assert found["reward_range"] == [0.0, 3.0]


def test_observations_are_removed_by_those_who_may_and_what_is_wrong_is_refused(tmp_path):
    async def scenario(client):
        for event in ("a", "b"):
            await client("POST", "/v1/decide", {"event_id": event, "arms": ["x", "y"]})
            await client("POST", "/v1/reward", {"event_id": event, "reward": 1})
        for body, status in (
            ({}, 400),
            ([], 400),
            ({"event_ids": []}, 400),
            ({"event_ids": [3]}, 400),
            ({"event_ids": ["a"], "arm": "x"}, 400),
            ({"event_ids": ["a"], "since": 1}, 400),
            ({"since": "yesterday"}, 400),
            ({"since": 9e9}, 400),
            ({"since": 2, "until": 1}, 400),
            ({"arm": "x"}, 400),
            ({"event_ids": ["a", "nobody"]}, 404),
        ):
            assert (await client("POST", "/v1/forget", body)).status == status, body
        assert (await client("POST", "/v1/forget", {"event_ids": ["a"]})).json == {"observations": 1, "pending": 0}
        assert (await client("POST", "/v1/forget", {"since": 0})).json == {"observations": 1, "pending": 0}

    play(scenario, tmp_path)


def test_a_rate_is_set_and_ended_while_the_service_runs(tmp_path):
    async def scenario(client):
        async def statuses(count):
            answers = [await client("POST", "/v1/decide", {"arms": ["x", "y"]}) for _ in range(count)]
            return [each.status for each in answers]

        for wrong in (0, -1, "fast", 1e9):
            assert (await client("PATCH", "/v1/settings", {"rate": wrong})).status == 400
        await client("PATCH", "/v1/settings", {"rate": 0.01})
        assert await statuses(3) == [200, 429, 429]
        batch = await client("POST", "/v1/decide/batch", {"requests": [{"arms": ["x"]}] * 5})
        assert (batch.status, batch.json["error"]["code"]) == (429, "overloaded")
        alarms = (await client("GET", "/v1/status")).json["alarms"]
        assert any("than the rate of 0.01 per second that is set" in each["words"] for each in alarms)
        await client("PATCH", "/v1/settings", {"rate": None})
        assert await statuses(3) == [200, 200, 200]

    play(scenario, tmp_path)


def test_snapshots_are_pinned_and_those_of_before_a_removal_are_gone(tmp_path):
    async def scenario(client):
        number = (await client("POST", "/v1/snapshots")).json["number"]
        pinned = await client("PATCH", f"/v1/snapshots/{number}", {"pinned": True})
        assert pinned.json["pinned"]
        for _ in range(6):
            await client("POST", "/v1/snapshots")
        listed = (await client("GET", "/v1/snapshots")).json["snapshots"]
        assert [each["number"] for each in listed if each["pinned"]] == [number]
        assert len(listed) == 6  # the last five, which are of today, and it
        for path, body, status in (
            (number, {"pinned": 1}, 400),
            (number, {}, 400),
            (999, {"pinned": True}, 404),
            ("x", {"pinned": True}, 404),
        ):
            assert (await client("PATCH", f"/v1/snapshots/{path}", body)).status == status
        await client("POST", "/v1/decide", {"event_id": "e", "arms": ["x", "y"]})
        await client("POST", "/v1/reward", {"event_id": "e", "reward": 1})
        await client("POST", "/v1/forget", {"event_ids": ["e"]})
        assert (await client("GET", "/v1/snapshots")).json["snapshots"] == []
        assert (await client("POST", "/v1/rollback", {"snapshot": number})).status == 404
        made = (await client("POST", "/v1/snapshots")).json["number"]
        assert (await client("POST", "/v1/rollback", {"snapshot": made})).status == 200

    play(scenario, tmp_path)

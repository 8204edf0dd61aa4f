"""`neuralucb serve` as a process: Personalizer's own client, kill -9, SIGTERM, slow clients, addresses."""

import random
import signal
import socket
import subprocess
import threading
import time
from http.client import HTTPException

import pytest

from tests.processes import run_python, started
from tests.service.live import SMALL, command, environment, serving

ARMS = [{"id": "a", "features": {"price": 3}}, {"id": "b", "features": {"price": 5, "kind": "new"}}]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("live")) as server:
        yield server


def personalize(endpoint, events):
    """Play events through the published client; returns the share of good actions in the first and last tenth."""
    from azure.cognitiveservices.personalizer import PersonalizerClient
    from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
    from msrest.authentication import CognitiveServicesCredentials

    client = PersonalizerClient(endpoint, CognitiveServicesCredentials("any-key"))
    actions = [RankableAction(id=name, features=[{"kind": name, "price": 1}]) for name in ("tea", "coffee", "water")]
    generator, good = random.Random(0), []
    for number in range(events):
        morning = generator.random() < 0.5
        deferred, excluded = number % 10 == 3, ["water"] if number % 7 == 0 else []
        # LinUCB needs the product that the policy by default finds by itself
        features = [{"time": "morning" if morning else "evening"}, {"user": {"age": generator.randrange(20, 60)}}]
        answer = client.rank(
            RankRequest(
                context_features=features, actions=actions, excluded_actions=excluded, event_id=f"event {number}/x",
                defer_activation=deferred,
            )
        )  # fmt: skip
        assert answer.event_id == f"event {number}/x"
        assert sorted(each.id for each in answer.ranking) == ["coffee", "tea", "water"]
        assert abs(sum(each.probability for each in answer.ranking) - 1) < 1e-6
        if excluded:
            assert (answer.ranking[2].id, answer.ranking[2].probability) == ("water", 0)
            assert answer.reward_action_id != "water"
        assert answer.reward_action_id == answer.ranking[0].id
        if deferred:
            client.events.activate(event_id=answer.event_id)
        best = answer.reward_action_id == "coffee"
        client.events.reward(event_id=answer.event_id, value=float(best))
        good.append(best)
    tenth = events // 10
    return sum(good[:tenth]) / tenth, sum(good[-tenth:]) / tenth


def test_the_published_personalizer_client_ranks_rewards_and_activates(live):
    pytest.importorskip("azure.cognitiveservices.personalizer")
    _, after = personalize(live.endpoint, 200)
    assert after > 0.6
    status, health = live.ask("GET", "/health")
    assert status == 200
    assert health["status"] == "healthy"


@pytest.mark.slow
def test_the_published_personalizer_client_plays_ten_thousand_events(tmp_path):
    pytest.importorskip("azure.cognitiveservices.personalizer")
    with serving(tmp_path) as server:
        _, after = personalize(server.endpoint, 10_000)
        assert after > 0.7
        time.sleep(1.5)
        _, health = server.ask("GET", "/health")
        assert health["counters"]["decisions"] == health["counters"]["observed"] == 10_000
        assert health["failure"] is None


def test_personalizer_errors_have_its_shape(live):
    from azure.cognitiveservices.personalizer import PersonalizerClient
    from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
    from msrest.authentication import CognitiveServicesCredentials
    from msrest.exceptions import HttpOperationError

    client = PersonalizerClient(live.endpoint, CognitiveServicesCredentials("any-key"))
    twice = [RankableAction(id="a", features=[]), RankableAction(id="a", features=[])]
    with pytest.raises(ErrorResponseException) as told:
        client.rank(RankRequest(actions=twice))
    assert told.value.error.error.code == "InvalidRankRequest"
    with pytest.raises(HttpOperationError, match="Not Found"):
        client.events.activate(event_id="nobody")
    client.events.reward(event_id="nobody", value=1.0)  # ranked before the move, perhaps


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path):
    """Three threads decide and reward until the process is killed, again and again; then every answer is compared."""
    decided, rewarded, lock = {}, set(), threading.Lock()

    def traffic(server, thread, life):
        try:
            for number in range(10_000):
                event = f"{life}-{thread}-{number}"
                ask = {
                    "event_id": event,
                    "context": {"hour": number % 24, f"new{thread}-{number % 9}": "x"},
                    "arms": ARMS,
                }
                status, answer = server.ask("POST", "/v1/decide", ask)
                assert status == 200
                with lock:
                    decided[event] = ask, answer
                status, told = server.ask("POST", "/v1/reward", {"event_id": event, "reward": number % 3})
                assert (status, told["status"]) == (200, "learned")
                with lock:
                    rewarded.add(event)
        except (OSError, HTTPException):  # the latter: between the head of an answer and its body
            return  # the server was killed

    for life in range(2):
        with serving(tmp_path) as server:
            threads = [threading.Thread(target=traffic, args=(server, each, life)) for each in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(0.7)
            server.process.kill()
            server.process.wait(30)
            for thread in threads:
                thread.join(60)
    assert len(rewarded) > 50
    with serving(tmp_path) as server:
        for event, (ask, answer) in decided.items():
            assert server.ask("POST", "/v1/decide", ask) == (200, {**answer, "repeated": True})
            status, told = server.ask("POST", "/v1/reward", {"event_id": event, "reward": 1})
            assert status == 200
            assert told["status"] == "repeated" if event in rewarded else told["status"] in ("learned", "repeated")


def test_a_slow_client_is_cut_off_and_sigterm_ends_the_service(tmp_path):
    head = (
        b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"
    )
    with serving(tmp_path, config=SMALL + "\n[limits]\nseconds = 0.5\n") as server:
        for sent in (b"POST /v1/dec", head):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
                slow.sendall(sent)
                answer = slow.recv(1000)
                assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
        assert server.ask("POST", "/v1/decide", {"event_id": "e", "arms": ARMS})[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert server.process.stderr.read() == ""


def test_a_port_that_is_taken_is_told(tmp_path, live):
    arguments = [*command(tmp_path), "--port", str(live.port)]
    with started(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "cannot be used" in err


@pytest.mark.slow
def test_generated_requests_get_answers_as_described(tmp_path):
    pytest.importorskip("schemathesis")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    with serving(tmp_path) as server:
        done = run_python(
            "-m", "schemathesis.cli", "run", f"{server.endpoint}/openapi.json", "--max-examples", "150", "--phases",
            "coverage,fuzzing", "--checks", checks, "--seed", "1", cwd=tmp_path, timeout=500,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-5000:]
        assert server.ask("POST", "/v1/decide", {"arms": ARMS})[0] == 200

"""A decision service around Vowpal Wabbit, written as simply as can be: the same requests, the same server, no journal.

`service.py --peer` starts it. It learns from every reward at once, in the thread that answers; nothing is kept on disk.
"""

import random
import sys

import orjson
import uvicorn
from vowpalwabbit import Workspace

model = Workspace("--cb_explore_adf --epsilon 0.05 --quiet")
events = {}


def words(name, features):
    return f"|{name} " + " ".join(f"{key}:{value}" for key, value in (features or {}).items())


def decide(request):
    lines = ["shared " + words("context", request.get("context"))]
    lines += [words("arm", arm["features"]) for arm in request["arms"]]
    chances = model.predict(lines)
    (chosen,) = random.choices(range(len(chances)), chances)
    events[request["event_id"]] = lines, chosen, chances[chosen]
    arms = [{"id": arm["id"], "propensity": each} for arm, each in zip(request["arms"], chances, strict=True)]
    return {"event_id": request["event_id"], "arm": request["arms"][chosen]["id"], "arms": arms}


def reward(request):
    lines, chosen, chance = events.pop(request["event_id"])
    lines[1 + chosen] = f"0:{-request['reward']}:{chance} " + lines[1 + chosen]
    model.learn(lines)
    return {"status": "learned"}


def decide_batch(request):
    named = ({"event_id": str(random.random()), **each} for each in request["requests"])
    return {"decisions": [decide(each) for each in named]}


ROUTES = {"/v1/decide": decide, "/v1/reward": reward, "/v1/decide/batch": decide_batch}


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": f"{message['type']}.complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    answer = orjson.dumps(ROUTES[scope["path"]](orjson.loads(body)))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"serves http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)


if __name__ == "__main__":
    settings = uvicorn.Config(application, port=int(sys.argv[1]), loop="uvloop", log_level="warning", access_log=False)
    Server(settings).run()

"""The decision service under load: decisions per second and latency, over loopback, from a process of its own.

    python benchmarks/service.py                                # the server is started and stopped
    python benchmarks/service.py --parts rate --seconds 600     # as long as the claim in docs/benchmarks.md
    python benchmarks/service.py --parts peer                   # beside a service around Vowpal Wabbit
    python benchmarks/service.py --parts restart                # killed with 100 000 observations, and started again

10 arms with 50 numbers each, journal on, a reward for every decision, learning in the background. The loads: `rate`,
requests at a fixed rate, whatever the answers take (latency counts from when a request was due); `closed`, as many as
16 connections can make one after the other; `overload`, the same from 400 without rewards; and `batches` of 100.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ARMS, FEATURES = 10, 50
SOURCE = Path(__file__).parent.parent / "src"


class Connection:
    """One persistent HTTP connection."""

    def __init__(self, port):
        self.port = port

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def post(self, path, body):
        """Status and bytes of one answer."""
        kind = f"content-type: application/json\r\ncontent-length: {len(body)}"
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{kind}\r\n\r\n"
        self.writer.write(head.encode() + body)
        status, length = 0, 0
        while (line := await self.reader.readline()) != b"\r\n":
            if not status:
                status = int(line.split()[1])
            elif line[:15].lower() == b"content-length:":
                length = int(line[15:])
        return status, await self.reader.readexactly(length)


def bodies(count, seed=0):
    """Requests as bytes; the event id is filled in later."""
    generator, made = random.Random(seed), []
    for _ in range(count):
        arms = [
            {"id": f"arm{arm}", "features": {f"f{i}": round(generator.gauss(0, 1), 4) for i in range(FEATURES)}}
            for arm in range(ARMS)
        ]
        made.append(json.dumps({"context": {"hour": generator.randrange(24)}, "arms": arms}).encode())
    return made


async def decide(connection, body, event):
    return await connection.post("/v1/decide", b'{"event_id":"%s",' % event.encode() + body[1:])


async def reward(connection, event):
    return await connection.post("/v1/reward", json.dumps({"event_id": event, "reward": random.random()}).encode())


async def at_rate(port, rate, seconds, name):
    """Latencies of requests that are due at a fixed rate, in seconds; and answers by status."""
    ready = bodies(200)
    free, latencies, statuses, tasks = asyncio.Queue(), [], {}, set()
    for _ in range(128):
        free.put_nowait(await Connection(port).open())

    async def one(number, due):
        connection = await free.get()
        event = f"{name}-{number}"
        status, _ = await decide(connection, ready[number % len(ready)], event)
        latencies.append(time.perf_counter() - due)
        statuses[status] = statuses.get(status, 0) + 1
        if status == 200:
            await reward(connection, event)
        free.put_nowait(connection)

    begin = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0, due - time.perf_counter()))
        task = asyncio.create_task(one(number, due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return latencies, statuses, time.perf_counter() - begin


async def closed(port, connections, seconds, name, *, with_rewards=True):
    """The same, from connections that each wait for their answer."""
    ready, latencies, statuses = bodies(200), [], {}
    begin = time.perf_counter()

    async def one(which):
        connection, number = await Connection(port).open(), 0
        while time.perf_counter() - begin < seconds:
            event, asked = f"{name}-{which}-{number}", time.perf_counter()
            status, _ = await decide(connection, ready[(which + number) % len(ready)], event)
            latencies.append(time.perf_counter() - asked)
            statuses[status] = statuses.get(status, 0) + 1
            if status == 200 and with_rewards:
                await reward(connection, event)
            number += 1

    await asyncio.gather(*(one(which) for which in range(connections)))
    return latencies, statuses, time.perf_counter() - begin


async def batched(port, seconds, size=100):
    """Decisions per second in batches of so many, from two connections."""
    text, begin, made = b",".join(bodies(size)), time.perf_counter(), 0
    body = b'{"requests":[' + text + b"]}"

    async def one():
        nonlocal made
        connection = await Connection(port).open()
        while time.perf_counter() - begin < seconds:
            status, _ = await connection.post("/v1/decide/batch", body)
            assert status == 200, status
            made += size

    await asyncio.gather(one(), one())
    return made / (time.perf_counter() - begin)


def row(name, latencies, statuses, seconds):
    cuts = statistics.quantiles(latencies, n=1000)
    p50, p99, p999 = (1000 * cuts[index] for index in (499, 989, 998))
    good, busy = statuses.get(200, 0), statuses.get(429, 0)
    others = sum(statuses.values()) - good - busy
    print(f"| {name} | {good / seconds:.0f} | {p50:.1f} | {p99:.1f} | {p999:.1f} | {busy} | {others} |", flush=True)


def memory(process):
    """Resident megabytes."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


async def measure(process, port, arguments):
    await closed(port, 4, 3, "warm")
    print("| load | decisions/s | p50 ms | p99 ms | p99.9 ms | 429 | other errors |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    if "rate" in arguments.parts:
        row(f"{arguments.rate} per second", *await at_rate(port, arguments.rate, arguments.seconds, "rate"))
    if "closed" in arguments.parts:
        row("16 connections", *await closed(port, 16, arguments.seconds, "closed"))
    if "overload" in arguments.parts:
        before = memory(process)
        row("400 connections", *await closed(port, 400, arguments.seconds, "overload", with_rewards=False))
        print(f"memory: {before} MB before the last, {memory(process)} MB after it")
    if "batches" in arguments.parts:
        print(f"batches of 100: {await batched(port, arguments.seconds):.0f} decisions/s")


async def measure_peer(port, seconds, rounds=2):
    """Decisions per second of both services, in turns; rewards are learned in the first, and not sent in batches."""
    with started([sys.executable, str(Path(__file__).parent / "vw_service.py"), "0"]) as (_, theirs):
        for turn in range(rounds):
            for name, each in (("neuralucb", port), ("Vowpal Wabbit", theirs)):
                await closed(each, 4, 2, f"warm-{turn}")
                _, statuses, took = await closed(each, 16, seconds, f"peer-{turn}")
                many = await batched(each, seconds)
                print(f"| {name} | {statuses[200] / took:.0f} | {many:.0f} |", flush=True)


async def fill(port, count, name, size=100):
    """Make so many decisions, and send their rewards."""
    ready, connection = bodies(size), await Connection(port).open()
    for first in range(0, count, size):
        events = [f"{name}-{first + index}" for index in range(size)]
        asks = (b'{"event_id":"%s",' % event.encode() + body[1:] for event, body in zip(events, ready, strict=True))
        status, _ = await connection.post("/v1/decide/batch", b'{"requests":[' + b",".join(asks) + b"]}")
        assert status == 200, status
        rewards = [{"event_id": event, "reward": random.random()} for event in events]
        status, _ = await connection.post("/v1/reward/batch", json.dumps({"rewards": rewards}).encode())
        assert status == 200, status


async def first_decision(port):
    connection = await Connection(port).open()
    status, _ = await decide(connection, bodies(1)[0], f"first-{time.time()}")
    assert status == 200, status


async def snapshot(port):
    status, _ = await (await Connection(port).open()).post("/v1/snapshots", b"{}")
    assert status == 201, status


def measure_restarts(folder, observations, tails):
    """Seconds from the start of a process to its first decision, after kills with so many events since a snapshot."""
    with started(service(folder)) as (process, port):
        asyncio.run(fill(port, observations, "fill"))
        for turn, tail in enumerate(tails):
            asyncio.run(snapshot(port))
            asyncio.run(fill(port, tail, f"tail-{turn}"))
            process.kill()
            process.wait()
            began = time.perf_counter()
            process, port = start(service(folder))
            asyncio.run(first_decision(port))
            print(f"{observations} observations, {tail} since the snapshot: {time.perf_counter() - began:.1f} s")
        process.kill()
        process.wait()


def service(folder):
    return [sys.executable, "-m", "neuralucb.cli", "serve", "--port", "0", "--store", f"{folder}/store"]


def start(command):
    """A service, and its port."""
    paths = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})
    return process, int(process.stdout.readline().rsplit(":", 1)[1])


@contextmanager
def started(command):
    process, port = start(command)
    try:
        yield process, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--parts", default="rate,closed,overload,batches")
    parser.add_argument("--observations", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if "restart" in arguments.parts:
            measure_restarts(folder, arguments.observations, (0, 0, 30_000))
            return
        began = time.perf_counter()
        with started(service(folder)) as (process, port):
            print(f"ready after {time.perf_counter() - began:.1f} s")
            if "peer" in arguments.parts:
                print("| service | decisions/s, 16 connections with rewards | decisions/s, batches of 100 |")
                print("| --- | --- | --- |")
                asyncio.run(measure_peer(port, arguments.seconds))
            else:
                asyncio.run(measure(process, port, arguments))


if __name__ == "__main__":
    main()

"""A live `neuralucb serve` in a process of its own, which never outlives the test."""

import http.client
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import neuralucb
from tests.processes import started

SOURCE = Path(neuralucb.__file__).parent.parent
SMALL = """
[bandit]
algorithm = "lin-ucb"
slots = 16
floor = 0.2

[store]
arms = 4
"""
"""A policy that compiles fast."""


class Live:
    """Where a server listens, and its process."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.endpoint = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=()):
        """Status and JSON of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": "application/json", **dict(headers)})
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.headers.get("content-type") == "application/json"
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()


def command(folder, *arguments, config=SMALL):
    """The arguments that start a server over a folder."""
    file = folder / "config.toml"
    file.write_text(config)
    return [
        sys.executable, "-m", "neuralucb.cli", "serve", "--port", "0", "--store", str(folder / "store"),
        "--config", str(file), *arguments,
    ]  # fmt: skip


def environment():
    """With our source first."""
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}


@contextmanager
def serving(folder, *arguments, config=SMALL):
    """A server that is ready."""
    with started(
        command(folder, *arguments, config=config),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        line = process.stdout.readline()
        assert "serves http://" in line, process.stderr.read()
        yield Live(process, int(line.rsplit(":", 1)[1]))

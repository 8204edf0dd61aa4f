"""The requests that the pages show are answered as they show."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.service.direct import play

DOCS = Path(__file__).parent.parent.parent / "docs"


def requests(page):
    """Method, path, body and the answer that is shown, of every `$ curl`."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE):
            if command.startswith("curl"):
                shown = re.search(r"^\{.*$", command, flags=re.MULTILINE)
                words = shlex.split(command if shown is None else command[: shown.start()])
                body = words[words.index("-d") + 1] if "-d" in words else None
                method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
                (address,) = (word for word in words if word.startswith("http://"))
                yield method, address.removeprefix("http://127.0.0.1:8080"), body, shown and shown[0]


def shape(value):
    """The names in a value, and which of its lists and objects are shown."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return (
        [shape(inner) for inner in value]
        if isinstance(value, list)
        else type(value) in (int, float) or str(type(value))
    )


@pytest.mark.parametrize("name", ["serving.md", "personalizer.md", "tutorials/into_production.md"])
def test_requests_that_are_shown_are_answered_as_shown(name, tmp_path):
    async def scenario(client):
        found = list(requests(DOCS / name))
        assert len(found) >= 3
        for method, path, body, shown in found:
            answer = await client(method, path, raw=(body or "").encode())
            assert answer.status < 300, (path, answer.data)
            if shown is None:
                assert answer.status == 204
            elif "…" in shown:
                assert list(answer.json) == re.findall(r'"(\w+)":', shown)
            else:
                assert shape(answer.json) == shape(json.loads(shown)), path

    play(scenario, tmp_path)

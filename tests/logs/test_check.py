"""Checking a log: everything that is wrong with it, line by line."""

import json

import numpy as np

from neuralucb.logs import check_log
from neuralucb.logs.check import SeenIds
from tests.logs.examples import EVENT, write_lines


def test_check_finds_duplicates_and_all_that_is_wrong(tmp_path, command):
    torn = json.dumps(EVENT | {"EventId": "four"})[:-9]
    path = write_lines(tmp_path / "log.dsjson", EVENT, EVENT | {"EventId": "two", "_label_probability": 2}, EVENT)
    path.write_text(path.read_text() + torn)
    found = check_log(path)
    assert [line for line, _ in found.first] == [2, 3, 4]
    assert found.decisions == 2
    code, _, err = command("logs", "check", "log.dsjson")
    assert code == 1
    assert "log.dsjson:2: propensity must be above 0 and at most 1, got 2" in err
    assert "log.dsjson:3: duplicate id, got 'one' again" in err
    assert "log.dsjson:4: the last line is incomplete" in err
    write_lines(path, EVENT)
    assert command("logs", "check", "log.dsjson")[0] == 0


def test_an_empty_log_is_found_by_check(tmp_path):
    found = check_log(write_lines(tmp_path / "log.dsjson"))
    assert (found.sound, found.first) == (False, [(1, "the log has no decision")])


def test_ids_are_told_apart_in_time_that_grows_with_their_number():
    ids, seen = SeenIds(), []
    numbers = [f"id {n}" for n in np.random.default_rng(0).integers(30_000, size=40_000)]
    for first in range(0, 40_000, 500):
        lines = np.arange(first, first + 500)
        seen += [line for line, _ in ids.seen_before(np.asarray(numbers[first : first + 500], object), lines)]
    known = set()
    assert seen == [line for line, one in enumerate(numbers) if one in known or known.add(one)]
    assert len(ids.runs) < 12  # runs double in length, so that few are searched and an id is moved few times

"""Damaged files: each is read or refused with its name, and never as an error of NumPy, Arrow or the system."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralucb.logs import Skipped, check_log, open_log, read_chunks, write_log
from neuralucb.logs.batches import batches
from neuralucb.runtime.errors import InputError
from tests.logs.examples import EVENT, OPEN_BANDIT, decisions, feedback, lines_kept, other_parquet, write_lines

DAMAGES = 60
"""Damaged copies per format: enough to meet every part of a small file."""


def good_log(path):
    if path.suffix == ".csv":
        path.write_text(OPEN_BANDIT)
    elif path.suffix == ".npz":
        given = {name: value for name, value in feedback(20).items() if value is not None}
        np.savez_compressed(path, **given)
    else:
        write_log(path, [decisions(20)])
    return path


def damaged(content, random):
    """The bytes with a part cut off, taken out, put in or changed."""
    place, data = int(random.integers(len(content))), random.bytes(int(random.integers(1, 9)))
    return random.permutation(
        [
            content[:place],
            content[:place] + content[place + len(data) :],
            content[:place] + data + content[place:],
            content[:place] + data + content[place + len(data) :],
        ]
    )[0]


@pytest.mark.parametrize("ending", ["parquet", "dsjson", "npz", "csv"])
def test_a_damaged_file_is_read_or_refused_with_its_name(tmp_path, ending):
    content = good_log(tmp_path / f"good.{ending}").read_bytes()
    random, path = np.random.default_rng(0), tmp_path / f"bad.{ending}"
    refused = []
    for _ in range(DAMAGES):
        path.write_bytes(damaged(content, random))
        for use in (lambda: list(open_log(path, Skipped()).chunks()), lambda: check_log(path)):
            try:
                use()
            except InputError as problem:
                refused.append(str(problem))
    assert refused
    assert all(str(path) in message for message in refused)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("log.csv", "a,b\n".encode("utf-16"), "it is not text in UTF-8 .*; save it as UTF-8"),
        ("log.csv", OPEN_BANDIT.encode() + b"x" * 200_000 + b"\n", "line 4: field larger than field limit"),
        ("log.dsjson", b"\xef\xbb\xbf{}\n", r"line 1: not JSON \(UTF-8 byte order mark"),
        ("log.npz", b"", "not an .npz file, or truncated"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_a_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.*{reason}"):
        list(read_chunks(tmp_path / name))


def test_an_array_named_npz_is_refused(tmp_path):
    with (tmp_path / "log.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="log.npz cannot be read: not an .npz file, or truncated"):
        list(read_chunks(tmp_path / "log.npz"))


def test_an_id_that_is_not_text_is_refused_with_its_row(tmp_path):
    broken = pa.Array.from_buffers(pa.string(), 2, [None, *map(pa.py_buffer, (np.int32([0, 2, 4]), b"ab\xff\xfe"))])
    path = other_parquet(tmp_path / "log.parquet", id=broken)
    with pytest.raises(InputError, match="log.parquet row 2: id is not text in UTF-8"):
        list(read_chunks(path))
    assert lines_kept(path, Skipped()) == [1]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"shared": [1]}, "not ours, or damaged; recreate it"),
        ({"shared": "ab"}, "not ours, or damaged"),
        ({"arms": 2.7}, "not ours, or damaged"),
        ({"arms": True}, "not ours, or damaged"),
        ({"arms": 1}, "has arm 1 in rows 1 to 2, but its metadata says that it has 1 arms; recreate it"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(tmp_path, facts, reason):
    path = other_parquet(tmp_path / "log.parquet")
    facts = {"version": 1, "shared": [], "own": [], "arms": 2} | facts
    table = parquet.read_table(path).replace_schema_metadata({"neuralucb.log": json.dumps(facts)})
    parquet.write_table(table, path)
    with pytest.raises(InputError, match=f"log.parquet.*{reason}"):
        list(batches(open_log(path)))


def test_numbers_of_16_bits_are_numbers(tmp_path):
    path = other_parquet(tmp_path / "log.parquet", reward=np.float16([1.5, -2]))
    (chunk,) = read_chunks(path)
    assert chunk.reward.tolist() == [1.5, -2]


@pytest.mark.parametrize("time", ["2026-02-04T16:31:29.24+01Z", "2026-02-04T16:31:29.24-01:30Z"])
def test_a_time_with_an_offset_before_its_z_is_no_time(tmp_path, time):
    path = write_lines(tmp_path / "log.dsjson", EVENT, EVENT | {"Timestamp": time})
    with pytest.raises(InputError, match="line 2: Timestamp is not a time"):
        list(read_chunks(path))

"""Files that are small, and would be large in memory, are refused before they are expanded."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from neuralucb import InputError
from neuralucb.experiments.result_files import read_results
from neuralucb.logs import dsjson_read, open_log
from neuralucb.problems.table_files import read_table
from neuralucb.runtime import memory
from neuralucb.runtime.expansion import npz_bytes, parquet_bytes

MEMORY = 5_000_000
"""Bytes that are free, as the tests pretend."""


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(memory, "host_bytes", lambda: MEMORY)


def equal_values(path, **columns):
    """A Parquet file of a few kilobytes with a million rows, each column one value."""
    arrays = {name: pa.repeat(value, 1_000_000) for name, value in columns.items()}
    parquet.write_table(pa.table(arrays), path, compression="zstd")
    assert path.stat().st_size < 100_000
    return path


def refused(read):
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"needs .* GB and .* GB are free; |at most 65536|MiB in one of the lines"):
            read()
        assert tracemalloc.get_traced_memory()[1] < 40 * MEMORY
    finally:
        tracemalloc.stop()


def test_a_table_of_equal_numbers_or_texts_is_refused(tmp_path, little_memory):
    numbers = equal_values(tmp_path / "numbers.parquet", x=1.0, y=2.0)
    assert parquet_bytes(parquet.read_metadata(numbers)) == [16_000_000]
    refused(lambda: read_table(numbers, {"label": "y"}))
    refused(lambda: read_results(numbers))


def test_a_table_of_one_long_text_is_refused(tmp_path, little_memory):
    text = tmp_path / "text.parquet"
    parquet.write_table(pa.table({"x": pa.repeat("a" * 100_000, 1000), "y": pa.repeat(1, 1000)}), text)
    assert text.stat().st_size < MEMORY
    refused(lambda: read_table(text, {"label": "y"}))


def test_a_log_whose_lists_are_far_larger_than_the_file_is_refused(tmp_path, little_memory):
    path = tmp_path / "log.parquet"
    lists = pa.array([np.zeros(3_000_000)])
    row = {"arm": [0], "reward": [1.0], "propensity": [1.0], "arms": pa.array([[0]])}
    parquet.write_table(pa.table({**row, "shared": lists}), path, compression="zstd")
    assert path.stat().st_size < 20_000
    refused(lambda: open_log(path))


@pytest.mark.parametrize("read", [lambda path: read_table(path, {"label": "y"}), open_log])
def test_an_archive_of_zeros_is_refused(read, tmp_path, little_memory):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, X=np.zeros((10_000, 100)), y=np.zeros(10_000))
    assert path.stat().st_size < 20_000
    assert npz_bytes(path) > MEMORY
    refused(lambda: read(path))


def event(actions):
    ranking = list(range(1, len(actions) + 1))
    label = {"_label_cost": 0, "_label_probability": 1.0, "_label_Action": 1, "_labelIndex": 0}
    return json.dumps({**label, "a": ranking, "p": [1.0] * len(actions), "c": {"_multi": actions}})


def test_events_whose_table_would_not_fit_are_refused(tmp_path, little_memory, monkeypatch):
    path = tmp_path / "log.dsjson"
    many = [{"x": dict.fromkeys(map(str, range(2000)), 1)}, *[{"x": {"0": 1}}] * 2000]
    path.write_text(event(many) + "\n")
    refused(lambda: open_log(path))
    path.write_text(event([{"x": {"0": 1}}] * 70_000) + "\n")
    refused(lambda: open_log(path))
    monkeypatch.setattr(dsjson_read, "LONGEST", 1000)
    path.write_text(event([{"x": {"0": 1}}] * 100) + "\n")
    refused(lambda: open_log(path))

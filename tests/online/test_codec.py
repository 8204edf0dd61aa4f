"""The encoding of events."""

import json
import struct

import numpy as np
import pytest

from neuralucb import InputError, StorageError
from neuralucb.online.codec import pack, unpack


def test_unpack_returns_what_was_packed():
    arrays = {
        "a": np.arange(6, dtype=np.float64).reshape(2, 3),
        "b": np.zeros((0, 4), np.int32),
        "c": np.float32(3)[()],
    }
    arrays["c"] = np.asarray(arrays["c"])
    fields, read = unpack(pack({"kind": "x", "arms": ["a", 1], "none": None}, arrays))
    assert fields == {"kind": "x", "arms": ["a", 1], "none": None}
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


@pytest.mark.parametrize("kind", ["|O", "O8", "<U4", "|S3", "<M8[s]", "<c8", ">f4", "|V2", "f4,f4", ["a"], None, 5])
def test_only_the_types_that_are_written_are_read(kind):
    text = json.dumps([{"kind": "x"}, {"a": [kind, [2]]}], separators=(",", ":")).encode()
    with pytest.raises(StorageError, match=r"segment 3 holds something that this version does not write"):
        unpack(struct.pack("<I", len(text)) + text + bytes(64), "segment 3")


@pytest.mark.parametrize("shape", [[-1, -2], [2**62], [10**30], [0.5], ["2"], None, 9])
def test_shapes_that_do_not_fit_are_refused(shape):
    text = json.dumps([{}, {"a": ["<f4", shape]}], separators=(",", ":")).encode()
    with pytest.raises(StorageError, match="does not write"):
        unpack(struct.pack("<I", len(text)) + text + bytes(64))


@pytest.mark.parametrize("payload", [b"", b"\xff" * 9, struct.pack("<I", 3) + b"\xff\xfe\xfd", b"\2\0\0\0[["])
def test_bytes_that_are_no_record_are_refused(payload):
    with pytest.raises(StorageError, match="does not write"):
        unpack(payload)


def test_arrays_of_other_types_are_not_written():
    with pytest.raises(InputError, match=r"array a must have one of the types .*'<c16'"):
        pack({}, {"a": np.zeros(2, complex)})

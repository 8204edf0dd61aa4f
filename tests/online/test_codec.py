"""The encoding of events."""

import numpy as np

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

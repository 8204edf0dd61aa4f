"""The folder of compiled programs stays bounded."""

import os

from neuralucb.runtime.compile_cache import forget_oldest


def test_the_files_used_longest_ago_are_forgotten_until_half_of_the_limit_is_left(tmp_path):
    for age in range(10):
        path = tmp_path / f"program-{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    forget_oldest(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    forget_oldest(tmp_path, 999)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"program-{age}" for age in range(4)]
    forget_oldest(tmp_path / "missing", 0)

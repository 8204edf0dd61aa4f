"""Strict JAX for all tests: no silent promotion of types or ranks. Compiled programs are kept between runs."""

import sys
from pathlib import Path

import jax
import pytest

from neuralucb import cli

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".cache" / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture
def key():
    return jax.random.key(7)


@pytest.fixture
def wide():
    """64-bit types for tests that trace float64 beliefs themselves."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Runs a command in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_leave", sys.exit)  # not out of the tests

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["neuralucb", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call

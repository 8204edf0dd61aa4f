"""Strict JAX for all tests: no silent promotion of types or ranks. Compiled programs are kept between runs."""

from pathlib import Path

import jax
import pytest

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

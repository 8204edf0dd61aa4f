"""JAX as users have it, for tests of policies that train with optax, which relies on the usual promotion."""

import jax
import pytest


@pytest.fixture
def as_users_have_it():
    """For all threads, unlike JAX's context managers: a background lesson compiles too."""
    usual = {"jax_numpy_dtype_promotion": "standard", "jax_numpy_rank_promotion": "allow"}
    strict = {name: getattr(jax.config, name) for name in usual}
    for name, value in usual.items():
        jax.config.update(name, value)
    yield
    for name, value in strict.items():
        jax.config.update(name, value)

"""Which cases of a test run at night alone, with `make test-slow`: one more of a kind costs CI more than it tells."""

import pytest

__all__ = ["in_ci"]


def in_ci(cases, *kept):
    """Parameters for `pytest.mark.parametrize`: those that are not kept in CI are marked slow."""
    missing = [each for each in kept if each not in cases]
    assert not missing, f"no such cases: {missing}"
    return [each if each in kept else pytest.param(each, marks=pytest.mark.slow) for each in cases]

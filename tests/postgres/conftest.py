"""A real PostgreSQL for the tests of the store; they are skipped where pgserver or psycopg is not installed."""

import itertools

import pytest

pytest.importorskip("psycopg", exc_type=ImportError)

from tests.postgres.server import Server, is_installed

_schemas = itertools.count()


@pytest.fixture(scope="session")
def server():
    if not is_installed():
        pytest.skip("pgserver is not installed")
    with Server() as running:
        yield running


@pytest.fixture
def address(server):
    """The address of a schema that no other test uses."""
    return f"{server.address}&schema=test_{next(_schemas)}"

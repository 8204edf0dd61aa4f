"""The store of a decision service in PostgreSQL: any number of replicas that serve, and one of them that learns."""

from neuralucb.service.postgres.address import Address, read_address
from neuralucb.service.postgres.retention import Retention
from neuralucb.service.postgres.store import PostgresStore, open_postgres

__all__ = ["Address", "PostgresStore", "Retention", "open_postgres", "read_address"]

"""The store of a decision service in PostgreSQL: any number of replicas that serve, and one of them that learns."""

from neuralucb.service.postgres.address import Address, read_address
from neuralucb.service.postgres.erasure import Removed, delete_user, exclude_period
from neuralucb.service.postgres.export import Exported, export_log
from neuralucb.service.postgres.retention import Retention
from neuralucb.service.postgres.store import PostgresStore, open_postgres

__all__ = [
    "Address",
    "Exported",
    "PostgresStore",
    "Removed",
    "Retention",
    "delete_user",
    "exclude_period",
    "export_log",
    "open_postgres",
    "read_address",
]

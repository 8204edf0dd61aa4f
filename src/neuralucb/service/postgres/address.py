"""The address of a store in PostgreSQL: where the database is, which schema the bandit has, what the process does."""

import re
from typing import Literal, NamedTuple, TypeAlias, cast, get_args
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from neuralucb.runtime.errors import InputError

__all__ = ["Address", "Role", "read_address"]

Role: TypeAlias = Literal["all", "serve", "learn"]
"""all: serve, and learn if no other process does; serve: never learn; learn: only learn, or wait to."""

SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,39}")
"""What a schema may be called: a word that needs no quotes in SQL, and fits the name of a channel."""


class Address(NamedTuple):
    """What `--store postgresql://…` says."""

    conninfo: str
    """for libpq"""
    schema: str = "neuralucb"
    """one per bandit; a database may have many"""
    role: Role = "all"
    keep_days: float | None = None
    """for how long decisions are kept that have been learned from; None: for ever"""

    @property
    def shown(self) -> str:
        """Without user and password, for messages and logs."""
        parts = urlsplit(self.conninfo)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} (schema {self.schema})"


def read_address(address: str, role: str | None = None) -> Address:
    """Read an address such as `postgresql://user@host/database?schema=shop&role=serve`.

    Args:
        address: As libpq takes it; of its parameters `schema`, `role` and `keep_days` are ours.
        role: What the process does; by default what the address says.

    Raises:
        InputError: It is no such address, or schema or role cannot be used.

    Example:
        >>> read_address("postgresql://shop@db/bandits?schema=shop&role=serve")
        Address(conninfo='postgresql://shop@db/bandits', schema='shop', role='serve', keep_days=None)
    """
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        raise InputError(f"store must begin with postgresql://, got {address!r:.80}.")
    fields = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in fields if name in ("schema", "role", "keep_days")}
    others = urlencode([(name, value) for name, value in fields if name not in ours])
    schema, role = ours.get("schema", "neuralucb"), role or ours.get("role", "all")
    if not SCHEMA.fullmatch(schema):
        raise InputError(
            f"schema must be a word of at most 40 lower-case letters, digits and underscores, got {schema!r:.60}."
        )
    if role not in get_args(Role):
        raise InputError(f"role must be one of {', '.join(get_args(Role))}, got {role!r:.60}.")
    days = ours.get("keep_days")
    if days is not None and not re.fullmatch(r"\d{1,6}(\.\d+)?", days):
        raise InputError(f"keep_days must be a number of days, got {days!r:.60}.")
    conninfo = urlunsplit(parts._replace(query=others))
    return Address(conninfo, schema, cast(Role, role), None if days is None else float(days))

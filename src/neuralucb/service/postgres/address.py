"""The address of a store in PostgreSQL: where the database is, which schema the bandit has, what the process does."""

import re
from typing import Literal, NamedTuple, TypeAlias, cast, get_args
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

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
        InputError: It is no such address, or schema or role cannot be used. It never shows the password.

    Example:
        >>> read_address("postgresql://shop@db/bandits?schema=shop&role=serve")
        Address(conninfo='postgresql://shop@db/bandits', schema='shop', role='serve', keep_days=None)
    """
    parts = _split(address)
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


def _split(address: str) -> SplitResult:
    """The parts of an address; words of an error leave out whatever may be part of a password."""
    scheme = address.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        shown = scheme if re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", scheme) else "something else"
        raise InputError(f"store must begin with postgresql://, got {shown}.")
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = None
    if parts is None or not _is_clear(parts):
        raise InputError(
            "store must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE, got an address that has other parts; in user "
            "and password write %2F for /, %40 for @, %3A for :, %3F for ? and %23 for #."
        )
    return parts


def _is_clear(parts: SplitResult) -> bool:
    """Whether no character of a password was taken for the end of it: the rest would be shown as host or path."""
    hosts = parts.netloc.rpartition("@")[2]
    ports = [re.sub(r"^\[.*\]", "", host).partition(":")[2] for host in hosts.split(",")]
    strays = [parts.path, parts.fragment, *(name for name, _ in parse_qsl(parts.query, keep_blank_values=True))]
    return (
        "@" not in "".join(strays)
        and not parts.fragment
        and parts.netloc.count("@") <= 1
        and all(re.fullmatch(r"\d*", port) for port in ports)
    )

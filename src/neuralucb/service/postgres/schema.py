"""The tables of a bandit in PostgreSQL: made once, by whichever process comes first, and upgraded likewise."""

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from neuralucb import __version__
from neuralucb.runtime.errors import InputError, StorageError
from neuralucb.service.events import plan_fields
from neuralucb.service.postgres.link import Link
from neuralucb.service.store import Plan, Settings

__all__ = ["FORMAT", "LOCKS", "install", "is_storable", "read_settings", "settings_json"]

FORMAT = 2
"""Of tables, functions and views. To change any of them, raise it, and name in UPGRADES what an older schema needs."""

UPGRADES: dict[int, tuple[str, ...]] = {2: ("functions.sql",)}
"""By the format that they lead to, files that may be run twice. 2: functions of format 1 differed between versions."""

LOCKS = {"install": 1, "learner": 2, "vocabulary": 3}
"""Advisory locks, by use; the second number of each is a hash of the schema's name."""


def install(link: Link, plan: Plan, settings: Settings, check: Callable[[Plan], object]) -> Plan:
    """Make the tables if they do not exist, and upgrade older ones, under a lock; returns the plan that they hold.

    check  refuses a plan that cannot be served, which must not be kept

    Raises:
        InputError: The plan of a new schema cannot be served, or the schema holds a bandit of another size.
        StorageError: It has a newer format, something else, or cannot be reached.
    """
    schema = link.address.schema

    def work(cursor: Any) -> Plan:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCKS["install"], schema))
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL, to_regclass(%s)", (schema, f"{schema}.bandit"))
        has_schema, table = cursor.fetchone()
        if table is None:
            check(plan)
            if not has_schema:
                cursor.execute(f"CREATE SCHEMA {schema}")
            for name in ("schema.sql", "functions.sql"):
                cursor.execute(_text(name))
            cursor.execute(
                "INSERT INTO bandit (format, plan, settings, versions) VALUES (%s, %s, %s, %s)",
                (FORMAT, json.dumps(plan_fields(plan)), settings_json(settings), json.dumps(_versions())),
            )
            return plan
        cursor.execute("SELECT format, plan FROM bandit")
        found, stored = cursor.fetchone()
        if found > FORMAT:
            raise StorageError(
                f"{link.address.shown} has format {found}, but this version reads up to {FORMAT}; update neuralucb."
            )
        if found < FORMAT:
            for name in dict.fromkeys(name for to in range(found + 1, FORMAT + 1) for name in UPGRADES[to]):
                cursor.execute(_text(name))
            cursor.execute("UPDATE bandit SET format = %s, versions = %s", (FORMAT, json.dumps(_versions())))
        if stored["slots"] != plan.slots and plan.slots != Plan().slots:
            raise InputError(
                f"slots must be {stored['slots']}, with which {link.address.shown} was made, got {plan.slots}; leave "
                "it out, or choose another schema."
            )
        return Plan(**{**stored, "interactions": tuple(map(tuple, stored["interactions"]))})

    return link.run(work)


def read_settings(stored: dict[str, Any]) -> Settings:
    """Settings from the table; those that it does not have yet are the default."""
    known = {name: value for name, value in stored.items() if name in Settings._fields}
    if known.get("reward_range") is not None:
        known["reward_range"] = tuple(known["reward_range"])
    return Settings(**{**known, "excluded": tuple(known.get("excluded", ()))})


def settings_json(settings: Settings) -> str:
    """Settings as they are stored."""
    return json.dumps(settings._asdict())


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold a text: it has no NUL, and is Unicode."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _text(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def _versions() -> dict[str, str]:
    import jax

    return {"neuralucb": __version__, "jax": jax.__version__}

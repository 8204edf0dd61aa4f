"""The configuration of a service: everything has a default, and a TOML file may set it."""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, get_args

from neuralucb.online.journal import SYNCS, Sync
from neuralucb.runtime.errors import InputError, meant
from neuralucb.schedules import read_schedule
from neuralucb.service.store import Aggregation, Candidate, Mode, Plan, Settings

__all__ = [
    "Config",
    "Limits",
    "Tokens",
    "check_candidate",
    "check_settings",
    "is_local_name",
    "is_loopback",
    "read_config",
]

LARGEST_REWARD = 1e30
"""In magnitude; sums of many must still fit float32."""

LONGEST_ID = 256
"""Of an event, an arm or a user, in characters."""

MOST_EXCLUDED = 1000

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
"""Of a candidate: it is part of a path, of a folder's name and of metrics."""


class Limits(NamedTuple):
    """What a request may cost."""

    body_bytes: int = 1 << 20
    arms: int = 1000
    batch: int = 1000
    """decisions or rewards in one request"""
    queue: int = 256
    """requests that may wait to be decided; more are answered 429"""
    pending: int = 1_000_000
    """events that may wait for a reward; beyond, requests are answered 429"""
    connections: int = 1000
    seconds: float = 10.0
    """for a client to send a whole request"""


class Tokens(NamedTuple):
    """Who may do what; admin may do everything. None at all: everybody may, and only this machine can connect."""

    decide: tuple[str, ...] = ()
    reward: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """the dashboard, health and metrics"""

    @property
    def required(self) -> bool:
        """Whether requests need a token."""
        return any(self)


class Config(NamedTuple):
    """All of it."""

    plan: Plan = Plan()
    settings: Settings | None = None
    """None: as the store has them; a new store has the defaults"""
    limits: Limits = Limits()
    tokens: Tokens = Tokens()
    sync: Sync = "interval"
    arms: int = 16
    """for how many decisions are compiled before the first"""
    candidates: Mapping[str, Candidate] = {}
    """added to those that the store has"""
    retention: tuple[int, int] | None = None
    """how many snapshots are kept, and of how many days the last; None: as the store does"""


def read_config(path: Path | None) -> Config:
    """The configuration in a TOML file, or the default."""
    if path is None:
        return Config()
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        why = "it was not found" if isinstance(problem, FileNotFoundError) else getattr(problem, "strerror", None)
        raise InputError(f"--config {path} cannot be read: {why or problem}.") from None
    sections = {"bandit", "candidates", "events", "limits", "tokens", "store"}
    if unknown := set(given) - sections:
        raise InputError(
            f"{path} must have the sections {', '.join(sorted(sections))}, got {_named(unknown, sections)}"
        )
    store = _record(path, "store", given, {"sync": "interval", "arms": 16, "snapshots": 5, "snapshot_days": 7})
    if store["sync"] not in SYNCS:
        raise InputError(f"{path} [store]: sync must be one of {', '.join(SYNCS)}, got {store['sync']!r}.")
    settings = None
    if "events" in given:
        _record(path, "events", given, dict.fromkeys(Settings._fields))
        settings = check_settings(given["events"], f"{path} [events]")
    tokens = _record(path, "tokens", given, {role: [] for role in Tokens._fields})
    limits = _limits(path, given)
    return Config(
        _plan(path, given),
        settings,
        limits,
        Tokens(**{role: _tokens(path, role, words) for role, words in tokens.items()}),
        store["sync"],
        _arms(path, given, limits.arms),
        _candidates(path, given),
        (_at_least_one(path, "store", "snapshots", store["snapshots"]), store["snapshot_days"])
        if {"snapshots", "snapshot_days"} & set(given.get("store", {}))
        else None,
    )


def check_candidate(name: str, fields: Any, where: str = "the candidate") -> Candidate:
    """A candidate from plain values; whether there is such an algorithm, with these options, the store says."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"name of a candidate must be 1 to 40 of a-z, 0-9, - and _, and not begin with these two, got {name!r:.60}."
        )
    known = Candidate()._asdict()
    if not isinstance(fields, Mapping):
        raise InputError(f"{where} must have fields of {', '.join(known)}, got {fields!r:.80}.")
    if unknown := set(fields) - set(known):
        raise InputError(f"{where} must have fields of {', '.join(known)}, got {sorted(unknown)[0]!r:.80}.")
    read = {**known, **fields}
    if not isinstance(read["algorithm"], str):
        raise InputError(f"{where}: algorithm must be a name, got {read['algorithm']!r:.80}.")
    if not isinstance(read["options"], Mapping):
        raise InputError(f"{where}: options must be names with values, got {read['options']!r:.80}.")
    check_settings({each: read[each] for each in ("floor", "schedule")}, where)
    return Candidate(**read)


def check_settings(fields: Mapping[str, Any], where: str = "settings") -> Settings:
    """Settings from plain values, all of them checked."""
    known = Settings()._asdict()
    if unknown := set(fields) - set(known):
        raise InputError(f"{where} must be among {', '.join(known)}, got {sorted(unknown)[0]!r}.")
    read = {**known, **fields}
    for name, choices in (("mode", get_args(Mode)), ("aggregation", get_args(Aggregation))):
        if read[name] not in choices:
            raise InputError(f"{where}: {name} must be one of {', '.join(choices)}, got {read[name]!r:.80}.")
    if not isinstance(read["learning"], bool):
        raise InputError(f"{where}: learning must be true or false, got {read['learning']!r:.80}.")
    if not is_real(read["default_reward"]) or abs(read["default_reward"]) > LARGEST_REWARD:
        raise InputError(
            f"{where}: default_reward must be a number of at most {LARGEST_REWARD:g}, got "
            f"{read['default_reward']!r:.80}."
        )
    wait = read["wait_seconds"]
    if wait is not None and (not is_real(wait) or not 0 <= wait <= 1e9):
        raise InputError(f"{where}: wait_seconds must be seconds, or null for ever, got {wait!r:.80}.")
    if wait is None and read["aggregation"] == "sum":
        raise InputError(f"{where}: aggregation sum needs wait_seconds: until then rewards are added up.")
    bounds = read["reward_range"]
    if bounds is not None:
        pair = bounds if isinstance(bounds, list | tuple) and len(bounds) == 2 else (1, 0)
        if not all(map(is_real, pair)) or not -LARGEST_REWARD <= pair[0] < pair[1] <= LARGEST_REWARD:
            raise InputError(f"{where}: reward_range must be two numbers, the lower first, got {bounds!r:.80}.")
        bounds = (float(pair[0]), float(pair[1]))
    if read["floor"] is not None and (not is_real(read["floor"]) or not 0 <= read["floor"] <= 1):
        raise InputError(f"{where}: floor must be from 0 to 1, or null for the plan's, got {read['floor']!r:.80}.")
    if read["rate"] is not None and (not is_real(read["rate"]) or not 0 < read["rate"] <= 1e6):
        raise InputError(
            f"{where}: rate must be above 0 and at most 1e6, or null for no limit, got {read['rate']!r:.80}."
        )
    if read["schedule"] is not None:
        if not isinstance(read["schedule"], str) or len(read["schedule"]) > LONGEST_ID:
            raise InputError(f'{where}: schedule must be such as "10:500,100", got {read["schedule"]!r:.80}.')
        if any(phase.forgets for phase in read_schedule(read["schedule"])):
            raise InputError(f"{where}: schedule must not forget (!) here, got {read['schedule']!r:.80}.")
    arms = read["excluded"]
    if not isinstance(arms, list | tuple) or len(arms) > MOST_EXCLUDED or not all(map(_is_arm, arms)):
        raise InputError(f"{where}: excluded must be at most {MOST_EXCLUDED} ids of arms, got {arms!r:.80}.")
    if read["pinned"] is not None and not _is_arm(read["pinned"]):
        raise InputError(f"{where}: pinned must be the id of an arm, or null for none, got {read['pinned']!r:.80}.")
    if read["pinned"] in arms:
        raise InputError(f"{where}: pinned must not be excluded, got {read['pinned']!r:.80}.")
    read |= {"reward_range": bounds, "default_reward": float(read["default_reward"])}
    return Settings(**{**read, "excluded": tuple(dict.fromkeys(arms))})


def is_real(value: Any) -> bool:
    """Whether it is a finite number, and not a boolean."""
    return type(value) in (int, float) and math.isfinite(value)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_name(host: str) -> bool:
    """Whether no name server was asked for it: it is localhost, or an address in numbers."""
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def _is_arm(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_ID


def _candidates(path: Path, given: Mapping[str, Any]) -> dict[str, Candidate]:
    found = given.get("candidates", {})
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: candidates must be sections such as [candidates.wide], got {found!r:.80}.")
    return {name: check_candidate(name, each, f"{path} [candidates.{name:.40}]") for name, each in found.items()}


def _limits(path: Path, given: Mapping[str, Any]) -> Limits:
    limits = Limits(**_record(path, "limits", given, Limits()._asdict()))
    for name, value in limits._asdict().items():
        if value <= 0:
            raise InputError(f"{path} [limits]: {name} must be positive, got {value!r:.80}; nothing could be served.")
    return limits


def _plan(path: Path, given: Mapping[str, Any]) -> Plan:
    fields = _record(path, "bandit", given, Plan()._asdict())
    kinds = (("algorithm", str, "a name"), ("options", Mapping, "a table"), ("schedule", str | None, "text"))
    for name, kind, words in kinds:
        if not isinstance(fields[name], kind):
            raise InputError(f"{path} [bandit]: {name} must be {words}, got {fields[name]!r:.80}.")
    if fields["window"] is not None:
        _at_least_one(path, "bandit", "window", fields["window"])
    pairs = fields["interactions"]
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
    ):
        raise InputError(f'{path} [bandit]: interactions must be pairs such as ["context", "arm"], got {pairs!r:.80}.')
    return Plan(**{**fields, "interactions": tuple((str(a), str(b)) for a, b in pairs)})


def _record(path: Path, section: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a section over their defaults: of known names, and whole numbers where the default is one."""
    found = given.get(section, {})
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: {section} must be a section, got {found!r:.80}.")
    for name, value in found.items():
        if name not in known:
            raise InputError(
                f"{path} [{section}]: names must be one of {', '.join(known)}, got {_named([name], known)}"
            )
        if type(known[name]) in (int, float) and (not is_real(value) or value < 0):
            raise InputError(f"{path} [{section}]: {name} must be a number of at least 0, got {value!r:.80}.")
        if type(known[name]) is int and type(value) is not int:
            raise InputError(f"{path} [{section}]: {name} must be a whole number, got {value!r:.80}.")
    return {**known, **found}


def _named(unknown: Iterable[str], known: Iterable[str]) -> str:
    """The first of the unknown names, and what it may have meant."""
    first = sorted(unknown)[0]
    return f"{first!r}.{meant(first, known)}"


def _tokens(path: Path, role: str, words: Any) -> tuple[str, ...]:
    if not isinstance(words, list) or not all(isinstance(word, str) and len(word) >= 16 for word in words):
        raise InputError(f"{path} [tokens]: {role} must be a list of words of at least 16 characters.")
    return tuple(words)


def _arms(path: Path, given: Mapping[str, Any], most: int) -> int:
    """For how many arms decisions are compiled."""
    arms = _at_least_one(path, "store", "arms", given.get("store", {}).get("arms", min(Config().arms, most)))
    if arms > most:
        raise InputError(f"{path} [store]: arms must be at most [limits] arms, {most}, got {arms}.")
    return arms


def _at_least_one(path: Path, section: str, name: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise InputError(f"{path} [{section}]: {name} must be a whole number of at least 1, got {value!r:.80}.")
    return value

"""Ids of decisions: the bandit's name, a code that only the bandit can compute, and the decision's number.

Whoever has one id can guess no other, and so cannot reward a decision that is not theirs. Codes follow from a secret
and the number, so that a restart gives the same ids, and none has to be stored.
"""

import hashlib
import hmac
import secrets
from typing import Any, NamedTuple

from neuralucb.runtime.errors import InputError

__all__ = ["DecisionIds"]

CODE_BYTES = 8
"""64 bits: a guess is right once in 10¹⁹."""
DIGITS = 20
"""More than any decision's number has."""


class DecisionIds(NamedTuple):
    """How a bandit names its decisions."""

    name: str
    """with which all ids begin"""
    secret: bytes
    """the key of the codes; empty where version 0.1, which had none, wrote the folder"""
    plain_below: int = 0
    """decisions below this number have ids without a code: version 0.1 made them"""

    @classmethod
    def new(cls) -> "DecisionIds":
        """For a new bandit."""
        return cls(secrets.token_hex(8), secrets.token_bytes(32))

    @classmethod
    def restored(cls, fields: dict[str, Any]) -> "DecisionIds":
        """What `export` described; version 0.1 wrote the name only."""
        return cls(fields["name"], bytes.fromhex(fields.get("secret", "")), int(fields.get("plain_below", 0)))

    def export(self) -> dict[str, Any]:
        """As plain values."""
        return {"name": self.name, "secret": self.secret.hex(), "plain_below": self.plain_below}

    def with_secret(self, decisions: int) -> "DecisionIds":
        """With codes from now on, for a bandit that has made so many decisions without."""
        return self if self.secret else self._replace(secret=secrets.token_bytes(32), plain_below=decisions)

    def id_of(self, number: int) -> str:
        """The id of a decision."""
        if number < self.plain_below or not self.secret:
            return f"{self.name}-{number}"
        code = hashlib.blake2b(str(number).encode(), digest_size=CODE_BYTES, key=self.secret).hexdigest()
        return f"{self.name}-{code}-{number}"

    def number_of(self, decision_id: Any) -> int:
        """The number of a decision from its id; an id that this bandit did not give is refused."""
        number = decision_id.rpartition("-")[2] if isinstance(decision_id, str) else ""
        if number.isdecimal() and len(number) <= DIGITS:
            expected = self.id_of(int(number)).encode()
            if hmac.compare_digest(decision_id.encode(errors="replace"), expected):
                return int(number)
        if hasattr(decision_id, "id"):
            kind = type(decision_id).__name__
            raise InputError(f"decision must be an id, a string, got a {kind} itself; pass its id: decision.id.")
        raise InputError(f"decision {decision_id!r:.80} is not of this bandit, whose ids begin with {self.name}-.")

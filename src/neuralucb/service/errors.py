"""Errors that a client sees: a status, a code that never changes its meaning, and words that name the cure."""

from typing import Any

from neuralucb.runtime.errors import InputError, StorageError

__all__ = ["CODES", "ServiceError", "as_service_error", "error_body"]

CODES: dict[str, tuple[int, str]] = {
    "invalid_json": (400, "the body is not JSON in UTF-8"),
    "invalid_request": (400, "a field is missing, of another type, or out of bounds"),
    "invalid_features": (400, "features cannot be encoded, or the policy cannot score them"),
    "unauthorized": (401, "the token is missing or wrong"),
    "forbidden": (403, "the token has another role"),
    "not_found": (404, "there is no such path, arm, candidate or snapshot"),
    "unknown_event": (404, "there is no such event, or it is too long ago"),
    "method_not_allowed": (405, "the path has no such method"),
    "timeout": (408, "the body did not arrive in time"),
    "conflict": (409, "the event id was used for another request"),
    "too_large": (413, "the body is larger than the limit"),
    "unsupported_media_type": (415, "the body is not declared as application/json"),
    "overloaded": (429, "too many requests wait, or too many events; try again later"),
    "fault": (500, "a fault of the service; its log says more"),
    "unavailable": (503, "the store cannot be written, or the service is stopping; try again later"),
}
"""Codes with their status and meaning: the list that clients can rely on."""

RETRY_AFTER = {429: "1", 503: "1"}
"""Seconds after which trying again makes sense."""


class ServiceError(Exception):
    """A request that cannot be answered: a code of CODES, words, and which field is meant."""

    def __init__(self, code: str, message: str, target: str | None = None) -> None:
        super().__init__(message)
        self.code: str = code
        self.message: str = message
        self.target: str | None = target

    @property
    def status(self) -> int:
        """Of the answer."""
        return CODES[self.code][0]

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Of the answer."""
        wait = RETRY_AFTER.get(self.status)
        return () if wait is None else ((b"retry-after", wait.encode()),)


def as_service_error(problem: Exception) -> ServiceError:
    """What a client is told of an error of the library; anything unknown is a fault of ours."""
    if isinstance(problem, ServiceError):
        return problem
    if isinstance(problem, InputError):
        return ServiceError("invalid_request", str(problem))
    if isinstance(problem, StorageError):
        return ServiceError("unavailable", str(problem))
    return ServiceError("fault", f"{type(problem).__name__}: this is a fault of the service, not of the request.")


def error_body(problem: ServiceError, code: str | None = None) -> dict[str, Any]:
    """The body of an error, which Personalizer's clients read too; they know other codes."""
    target = {} if problem.target is None else {"target": problem.target}
    return {"error": {"code": code or problem.code, "message": problem.message, **target}}

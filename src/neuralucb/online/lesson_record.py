"""How learning goes: when the last good lesson was, which failed since, and what the belief refused to absorb."""

import logging
from typing import Any, NamedTuple

from neuralucb.runtime.words import counted

__all__ = ["UNKNOWN", "LessonRecord", "refusal_words", "warn"]

UNKNOWN = "training diverged, or the belief was not finite"
"""Why a lesson failed, where version 0.1 wrote it."""

CURE = "look for contexts or rewards of extreme size, or build the policy with a smaller step_size or more retries"


class LessonRecord(NamedTuple):
    """What a bandit remembers of its lessons, as part of its state."""

    good_at: int | None = None
    """how many observations the last good lesson started from; None before the first"""
    failed: int = 0
    """lessons since then that were not promoted"""
    failed_at: int = 0
    """how many observations the last of them started from"""
    reason: str = ""
    """why it was not promoted"""
    refused: int = 0
    """observations that the belief had refused when the last lesson ended"""
    refused_before: int = 0
    """the same for the lesson before"""

    @classmethod
    def restored(cls, fields: Any, *, learned: int, diverged: int, at: int) -> "LessonRecord":
        """From a state's fields. Version 0.1 wrote None: its last lesson is taken for good if any was.

        learned, diverged  how many lessons were promoted, and how many were not
        at                 how many observations the last lesson started from
        """
        if fields is not None:
            return cls(**fields)
        if learned:
            return cls(good_at=at)
        return cls(None, diverged, at, UNKNOWN) if diverged else cls()

    def after_lesson(self, at: int, failure: str | None, refused: int) -> "LessonRecord":
        """With one more lesson, which started from `at` observations.

        failure  why it was not promoted; None if it was
        refused  observations refused so far
        """
        if failure is None:
            return LessonRecord(at, refused=refused, refused_before=self.refused)
        failed = self._replace(failed=self.failed + 1, failed_at=at, reason=failure)
        return failed._replace(refused=refused, refused_before=self.refused)

    def words(self, total: int, due: int | None) -> str:
        """When the last good lesson was.

        total  observations so far
        due    at which of them the next lesson is due; None where no schedule says
        """
        if self.failed:
            since = "; none was good so far" if self.good_at is None else f" since observation {self.good_at}"
            return f"{counted(self.failed, 'lesson')} failed{since}"
        if self.good_at is not None:
            return f"last good lesson at observation {self.good_at} of {total}"
        return "none yet; no schedule asks for one" if due is None else f"none yet; the first is due at {due}"

    def failure(self, refused: int) -> str | None:
        """What is wrong: lessons that failed since the last good one, and refusals since the last lesson but one."""
        found = [self.lesson_failure()] if self.failed else []
        if refused > self.refused_before:
            found.append(refusal_words(refused - self.refused_before))
        return "; ".join(found) or None

    def lesson_failure(self) -> str:
        """What failed, when, and what to do."""
        belief = "an untrained belief" if self.good_at is None else f"the belief of observation {self.good_at}"
        return f"the lesson at observation {self.failed_at} failed: {self.reason}; {belief} stays in use; {CURE}"


def refusal_words(count: int) -> str:
    """What it means that the belief refused so many observations, and what to do."""
    return (
        f"the belief refused {counted(count, 'observation')}, which would have made it infinite or NaN; scale the "
        "contexts, look for rewards of extreme size, or build a policy that learns units, such as neural-mix"
    )


def warn(words: str) -> str:
    """Log what is wrong, and return it."""
    logging.getLogger("neuralucb").warning(words)
    return words

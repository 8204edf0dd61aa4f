"""How long is rested after a lesson, so that decisions have the processor: as long as lessons take, times a factor.

A lesson that compiles takes long once, seconds in place of tenths: if its time counted, it would be rested for for
minutes.
"""

__all__ = ["Rest"]


class Rest:
    """Remembers what the last lesson took that compiled nothing.

    factor  seconds of rest per second of a lesson
    """

    def __init__(self, factor: float) -> None:
        self.factor: float = factor
        self._last = 0.0

    def after(self, seconds: float, *, was_compiled: bool) -> float:
        """Seconds to rest after a lesson of so many; `was_compiled` if it is known to have compiled nothing.

        Where that is not known, a lesson counts as long as the one before, if that was shorter.
        """
        counted = min(seconds, self._last)
        if was_compiled:
            self._last = seconds
        return self.factor * counted

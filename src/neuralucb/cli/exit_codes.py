"""The exit codes of the command `neuralucb`; docs/exit_codes.md tells users. 0 means that what was shown is sound."""

__all__ = ["BAD_INPUT", "FOUND_PROBLEMS", "INTERRUPTED", "SOFTWARE_FAULT", "UNSOUND"]

FOUND_PROBLEMS = 1
"""A log that was checked has problems, or runs of a sweep failed."""

BAD_INPUT = 2
"""What the caller can mend, told in one message."""

UNSOUND = 3
"""What was computed, or part of it, is not sound: training diverged, or scores were not finite."""

SOFTWARE_FAULT = 70
"""A fault of the library, as in sysexits.h."""

INTERRUPTED = 130
"""After Ctrl-C, as shells have it."""

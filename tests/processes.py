"""Child processes of tests: whatever happens, none of them outlives the test that started it."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

END_SECONDS = 30
"""How long a process that was killed may take to end."""


@contextmanager
def started(arguments, **options):
    """A `subprocess.Popen` in a process group of its own; at the end of the block the whole group is killed.

    Ctrl-C (SIGINT) works in it even where the tests themselves ignore that signal, as a shell makes them do in the
    background.
    """
    with _ctrl_c_not_ignored():
        process = subprocess.Popen([str(argument) for argument in arguments], start_new_session=True, **options)
    with process:  # closes its pipes
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # all of the group have ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(END_SECONDS)


def run_python(*arguments, timeout=300, **options):
    """A Python process, run to its end: a `subprocess.CompletedProcess` with its output as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    with started([sys.executable, *arguments], **pipes) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextmanager
def _ctrl_c_not_ignored():
    """A process inherits that SIGINT is ignored, but not a handler: while there is one, it starts with the default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
